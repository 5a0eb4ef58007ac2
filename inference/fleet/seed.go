package fleet

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// What this version writes, see [Params].
const (
	codesVersion = 1
	version      = headVersion
)

// NewParams returns the parameters of a fleet for members of this version.
func NewParams(name string, slices int, window time.Duration, seed uint64) Params {
	return Params{Name: name, Slices: slices, Window: window, Seed: seedMark(name, seed), Codes: codesVersion, Version: version}
}

// seedRounds make trying out seeds, such as those of a word list, a hundred thousand times as much work.
const seedRounds = 100_000

// seedMark distinguishes two seeds without revealing them: every reader of the roster sees it. Fleets of different names have
// different marks of one seed.
func seedMark(fleet string, seed uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	mark, err := pbkdf2.Key(sha256.New, string(b[:]), []byte("hopscope seed of "+fleet), seedRounds, 16)
	if err != nil {
		panic(err) // of lengths, which are constants
	}
	return hex.EncodeToString(mark)
}
