package flock

import (
	"bytes"
	"os"
)

// Lines counts the lines of a file, as far as it can be read; there are none without the file.
func Lines(path string) (n uint64) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var buf [64 << 10]byte
	for {
		k, err := f.Read(buf[:])
		n += uint64(bytes.Count(buf[:k], []byte{'\n'}))
		if err != nil {
			return n
		}
	}
}
