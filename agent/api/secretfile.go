package api

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	anyUser       fs.FileMode = 0o006   // may read or write
	maxSecretFile             = 1 << 20 // bytes
)

// ReadSecretFile reads a file that its mode must not give others by these bits. The error does not
// name the file.
func ReadSecretFile(name string, others fs.FileMode) ([]byte, error) {
	// What is no file is not opened: a device may do something then, or have no end.
	info, err := os.Stat(name)
	if err == nil {
		err = keepsSecret(info, others)
	}
	if err != nil {
		return nil, cause(err)
	}
	// A pipe that took its place meanwhile does not keep the agent waiting for a writer.
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer file.Close()
	if info, err = file.Stat(); err == nil {
		err = keepsSecret(info, others)
	}
	if err != nil {
		return nil, cause(err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err == nil && len(text) > maxSecretFile {
		err = fmt.Errorf("it has more than %d bytes", maxSecretFile)
	}
	return text, cause(err)
}

func keepsSecret(info fs.FileInfo, others fs.FileMode) error {
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return errors.New("it is no regular file")
	case mode.Perm()&others != 0:
		return fmt.Errorf("others can read or write it (mode %04o), so it is no secret; let its "+
			"owner alone do so (chmod 600), and make another one", mode.Perm())
	}
	return nil
}
