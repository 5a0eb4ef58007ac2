package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/sink/flock"
)

// lockPatience is how long one that changes the rules waits for another.
const lockPatience = 5 * time.Second

// lock takes the lock of a file, which the system releases when the process ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	for err = flock.Lock(f); errors.Is(err, flock.ErrLocked) && retry.Sleep(ctx, 20*time.Millisecond); err = flock.Lock(f) {
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
