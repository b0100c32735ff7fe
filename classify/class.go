package classify

import "fmt"

// Class says what a device error means for the numbers of the run, in rising
// severity; the highest class seen decides the run.
type Class int

const (
	// None: no device error was seen.
	None Class = iota
	// Recoverable: a device error that leaves the kernel's correctness open, such
	// as out of memory, an ordinary capture refusal or no such device.
	Recoverable
	// Poisoned: a graph capture left the context unusable; the operator is
	// capture-incompatible, not broken.
	Poisoned
	// Fatal: the kernel itself failed on the device; no number of the run counts.
	Fatal
)

var classNames = [...]string{"none", "recoverable", "poisoned", "fatal"}

// String returns the class's name as the record and the command line spell it.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("class(%d)", int(c))
	}
	return classNames[c]
}

// ParseClass is the inverse of String.
func ParseClass(name string) (Class, error) {
	for c, n := range classNames {
		if n == name {
			return Class(c), nil
		}
	}
	return None, fmt.Errorf("unknown class %q: use fatal, poisoned, recoverable or none", name)
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Class) UnmarshalText(text []byte) (err error) {
	*c, err = ParseClass(string(text))
	return err
}
