package probe

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"
)

// Digests of probes: HMAC-SHA-256, RFC 2104, cut to 64 bits, over what no switch changes.
const (
	keyIDLen  = 4
	digestLen = 8
	SignedLen = PayloadLen + keyIDLen + digestLen // payload of a probe with a digest

	fixedLen = 4 + 4 + 2 + 2 + 2 + 2 + 2 // addresses, ports, original port, bitmap and domain of INT
	coverLen = fixedLen + PayloadLen + keyIDLen

	leastKey = 16 // bytes
	mostKey  = 64
	mostKeys = 16
)

// Keys are secrets by which agents authenticate each other's probes. The first one is for sending. Any of them is valid
// for receiving, so that keys can be replaced while agents run.
type Keys struct{ list []secret }

type secret struct {
	id    uint32
	bytes []byte
}

// Sender is the number of the key that digests are sent with.
func (k *Keys) Sender() uint32 { return k.list[0].id }

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.list) }

// Secrets are the bytes of the keys, the one for sending first. They must not change.
func (k *Keys) Secrets() (list [][]byte) {
	for _, x := range k.list {
		list = append(list, x.bytes)
	}
	return list
}

// ReadKeys reads a file of keys, one a line: its number from 1 on, and 16 to 64 bytes in hex. A # begins a comment. No
// error holds a key. Without a path there are none.
func ReadKeys(path string) (*Keys, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k, err := parseKeys(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

func parseKeys(b []byte) (*Keys, error) {
	k := new(Keys)
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		x, err := parseKey(words)
		for _, old := range k.list {
			if err == nil && old.id == x.id {
				err = fmt.Errorf("key %d is there twice", x.id)
			}
		}
		if err == nil && len(k.list) == mostKeys {
			err = fmt.Errorf("more than %d keys; remove old ones", mostKeys)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		k.list = append(k.list, x)
	}
	if lines.Err() != nil { // whose text does not contain what it read
		return nil, errors.New("a line is too long for a key")
	}
	if len(k.list) == 0 {
		return nil, errors.New("no key; write a line such as \"1 HEX\", with HEX from \"openssl rand -hex 32\"")
	}
	return k, nil
}

// parseKey reads the words of a line.
func parseKey(words []string) (x secret, err error) {
	if len(words) != 2 {
		return x, fmt.Errorf("%d words; a line is a number and a key in hex", len(words))
	}
	id, err := strconv.ParseUint(words[0], 10, 32)
	if err != nil || id == 0 {
		return x, errors.New("the number of the key is outside 1..4294967295")
	}
	b, err := hex.DecodeString(words[1])
	if err != nil || len(b) < leastKey || len(b) > mostKey {
		return x, fmt.Errorf("key %d is no hex of %d to %d bytes; \"openssl rand -hex 32\" makes one", id, leastKey, mostKey)
	}
	return secret{uint32(id), b}, nil
}

// Digester computes digests for one goroutine, without allocations.
type Digester struct {
	keys  *Keys
	macs  []hash.Hash // by the place of the key
	cover [coverLen]byte
	sum   [sha256.Size]byte
}

// Use takes over keys, unless they are those in use.
func (d *Digester) Use(k *Keys) {
	if d.keys == k {
		return
	}
	d.keys, d.macs = k, d.macs[:0]
	for _, x := range k.list {
		d.macs = append(d.macs, hmac.New(sha256.New, x.bytes))
	}
}

// at is the digest of what cover holds, by the key at a place.
func (d *Digester) at(place int) []byte {
	m := d.macs[place]
	m.Reset()
	m.Write(d.cover[:])
	return m.Sum(d.sum[:0])[:digestLen]
}

// find returns the place of a key, or -1.
func (d *Digester) find(id uint32) int {
	for k, x := range d.keys.list {
		if x.id == id {
			return k
		}
	}
	return -1
}

// appendFixed appends the parts of the packet that a digest covers and that no switch changes, in front of the payload. The packet begins
// at its IP header, which has no options.
func appendFixed(dst, packet []byte) []byte {
	dst = append(dst, packet[12:24]...)  // addresses and ports
	dst = append(dst, packet[30:32]...)  // original port of the shim
	return append(dst, packet[36:40]...) // bitmap and domain
}
