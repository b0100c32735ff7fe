package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Identity is what run_identity.json says of the machine that made a number:
// the keys of the contract that zlexec replaces. Empty texts are unknown.
type Identity struct {
	Backend        string            `json:"backend"`
	Device         string            `json:"device"`
	DeviceName     string            `json:"device_name"`
	DeviceArch     string            `json:"device_arch"`
	TimerAPI       string            `json:"timer_api"`
	FlagGemsVendor string            `json:"flaggems_vendor"`
	VisibilityEnv  map[string]string `json:"visibility_env"`
}

// write merges the identity into the file: other keys there are kept. The file is
// replaced as a whole, so that a reader never sees half of it.
func (id Identity) write(path string) error {
	merged := map[string]json.RawMessage{}
	old, err := os.ReadFile(path)
	switch {
	case err == nil && len(old) > 0:
		if err := json.Unmarshal(old, &merged); err != nil {
			return fmt.Errorf("%s is no JSON object, and is left as it is: %w", path, err)
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	own, err := json.Marshal(id)
	if err == nil {
		err = json.Unmarshal(own, &merged)
	}
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(merged, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'))
}

// replaceFile writes a file beside path, brings it to the disk, and renames it.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	mode := fs.FileMode(0o644)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
