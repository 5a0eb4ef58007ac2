package notify

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// lockPatience is how long one that changes the rules waits for another.
const lockPatience = 5 * time.Second

// lock takes the lock of a file, which the system gives back when the process ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := flock.Lock(f)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, flock.ErrLocked) || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}
