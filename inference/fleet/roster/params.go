package roster

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
)

// Params holds the parameters that all members of a fleet share. They are kept in the roster under the key "fleet", as
// JSON.
type Params struct {
	Name    string        `json:"name"`      // of the fleet, as the instance of its points
	Slices  int           `json:"slices"`    // partitions of windows and of reports
	Window  time.Duration `json:"window_ns"` // length
	Seed    string        `json:"seed"`      // what [seedMark] makes of the seed, which itself stays secret
	Codes   int           `json:"codes"`     // version of units and codes of partials
	Version int           `json:"version"`   // of the records
}

// Differences returns in words in what q, that a member was configured with, differs from the fleet's p.
func (p *Params) Differences(q *Params) (out []string) {
	differ := func(what string, fleet, mine any) {
		if fleet != mine {
			out = append(out, fmt.Sprintf("%s: the fleet has %v, this member %v", what, fleet, mine))
		}
	}
	differ("name", p.Name, q.Name)
	differ("slices", p.Slices, q.Slices)
	differ("window", p.Window, q.Window)
	differ("codes and units", p.Codes, q.Codes)
	differ("records", p.Version, q.Version)
	if p.Seed != q.Seed {
		out = append(out, "seed: that of this member is another one; give all members the same seed_file")
	}
	return out
}

// The versions that this program writes, see [Params].
const (
	codesVersion = 1
	version      = fleet.Version
)

// NewParams returns the parameters of a fleet for members of this version.
func NewParams(name string, slices int, window time.Duration, seed uint64) Params {
	return Params{Name: name, Slices: slices, Window: window, Seed: seedMark(name, seed), Codes: codesVersion, Version: version}
}

// seedRounds make trying out seeds, such as those of a word list, a hundred thousand times as much work.
const seedRounds = 100_000

// seedMark distinguishes two seeds without revealing them: every reader of the roster sees it. Fleets of different
// names have different marks of one seed.
func seedMark(fleet string, seed uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	mark, err := pbkdf2.Key(sha256.New, string(b[:]), []byte("hopscope seed of "+fleet), seedRounds, 16)
	if err != nil {
		panic(err) // of lengths, which are constants
	}
	return hex.EncodeToString(mark)
}
