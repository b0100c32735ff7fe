package classify

import "testing"

func TestClassNames(t *testing.T) {
	for c := None; c <= Fatal; c++ {
		got, err := ParseClass(c.String())
		if err != nil || got != c {
			t.Errorf("ParseClass(%q) = %v, %v", c.String(), got, err)
		}
	}
	if _, err := ParseClass("FATAL"); err == nil {
		t.Error("an unknown class must be an error")
	}
	if None >= Recoverable || Recoverable >= Poisoned || Poisoned >= Fatal {
		t.Error("classes must rise in severity")
	}
}
