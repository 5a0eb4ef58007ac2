package windows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/stores"
)

// The state of the detectors is in a file beside the state file, since it is large and need not be of the last window.
// It is replaced every rememberEvery windows, and when the run ends in order. The next run goes on from it. Findings
// that ended while no collector ran end in the first windows that show it. Findings that began after the file was
// written begin again.
//
//	"hopdete1"  end of the last window<8b>  crc32c of the state<4b>  state of events.Detector, with a version of its own
const (
	rememberMagic = "hopdete1"
	rememberEvery = 30
	// rememberFor is the greatest age of the file: the daily pattern of a hop is known for two days.
	rememberFor = 24 * time.Hour
)

var errRemembered = errors.New("no state of detectors")

// rememberPath is the path of the file of detectors beside a state file.
func rememberPath(state string) string { return state + ".detectors" }

func encodeRemembered(end int64, state []byte) []byte {
	b := append([]byte(rememberMagic), make([]byte, 12)...)
	binary.BigEndian.PutUint64(b[8:], uint64(end))
	binary.BigEndian.PutUint32(b[16:], crc32.Checksum(state, castagnoli))
	return append(b, state...)
}

func decodeRemembered(b []byte) (end int64, state []byte, err error) {
	const head = len(rememberMagic) + 12
	if len(b) < head || string(b[:8]) != rememberMagic || binary.BigEndian.Uint32(b[16:]) != crc32.Checksum(b[head:], castagnoli) {
		return 0, nil, errRemembered
	}
	return int64(binary.BigEndian.Uint64(b[8:])), b[head:], nil
}

// remember restores the detectors from an earlier run. If the file is bad in any way, the collector runs, and the
// detectors learn anew.
func (d *Detectors) remember(path string, log *slog.Logger) {
	stores.Tidy(path, log)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var end int64
	var state []byte
	if err == nil {
		end, state, err = decodeRemembered(b)
	}
	if age := time.Duration(time.Now().UnixNano() - end); err == nil && (age > rememberFor || age < -rememberFor) {
		err = fmt.Errorf("it is of %s", time.Unix(0, end).UTC().Format(time.RFC3339))
	}
	if err == nil {
		err = d.events.ReadState(state)
	}
	if err != nil {
		log.Warn("the saved state of the detectors cannot be used: usual values are learnt anew", "file", path, "error", err.Error())
		return
	}
	d.open = d.events.Open()
	log.Info("the detectors resume from an earlier run", "file", path, "hops", d.events.Stats().Hops, "open_findings", len(d.open))
}

// write writes the file in the background, or leaves it to the next window while it is being written.
func (d *Detectors) write(path string, end int64, busy *sync.Mutex, log *slog.Logger) bool {
	if !busy.TryLock() {
		return false
	}
	b := encodeRemembered(end, d.events.AppendState(nil))
	go func() {
		defer busy.Unlock()
		if err := stores.ReplaceFile(path, b); err != nil {
			log.Error("the state of the detectors cannot be written", "file", path, "error", err.Error())
		}
	}()
	return true
}
