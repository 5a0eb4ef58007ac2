//go:build !unix

package refused

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Lock keeps others from removing and replacing entries in dir. Here it is a file that no other process can make; one that a killed
// process left has to be removed by hand.
func Lock(dir string) (io.Closer, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("another process is sending what is in %s; if not, remove %s: %w", dir, path, err)
	}
	return lock{f}, nil
}

type lock struct{ *os.File }

func (l lock) Close() error {
	err := l.File.Close()
	if rerr := os.Remove(l.Name()); err == nil {
		err = rerr
	}
	return err
}
