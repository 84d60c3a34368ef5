package linux

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces a file so that after a crash the old or the new one is there, whole.
func WriteFile(path string, data []byte) error {
	fresh, err := os.OpenFile(path+"~", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fresh.Write(data)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err != nil {
		_ = os.Remove(path + "~") // it takes room on a disk that has none
		return err
	}
	if err := os.Rename(path+"~", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
