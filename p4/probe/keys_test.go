package probe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keysOf reads keys from text.
func keysOf(t testing.TB, text string) *Keys {
	t.Helper()
	k, err := parseKeys([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var (
	oneKey   = "1 " + strings.Repeat("0a", 32)
	otherKey = "2 " + strings.Repeat("0b", 16)
)

// TestKeys checks the errors of a file of keys: they name its line, and never a key.
func TestKeys(t *testing.T) {
	secret := strings.Repeat("5e", 20)
	for _, c := range []struct{ text, want string }{
		{"# new\n2 " + secret + "  # since May\n\n1 " + strings.Repeat("aB", 64) + "\n", ""},
		{"", "no key; write a line"},
		{"# none\n", "no key; write a line"},
		{"1 " + secret + "\n1 " + secret, "line 2: key 1 is there twice"},
		{"\n0 " + secret, "line 2: the number of the key is outside 1..4294967295"},
		{"4294967296 " + secret, "line 1: the number of the key"},
		{"-1 " + secret, "line 1: the number of the key"},
		{secret, "line 1: 1 words; a line is a number and a key in hex"},
		{"1 " + secret + " x", "line 1: 3 words"},
		{"7 " + secret[:30], "line 1: key 7 is no hex of 16 to 64 bytes"},
		{"7 " + secret + "5", "line 1: key 7 is no hex"},
		{"7 " + strings.Repeat("00", 65), "line 1: key 7 is no hex of 16 to 64 bytes"},
		{strings.Repeat("x", 100_000), "a line is too long"},
		{func() (s string) {
			for n := range 17 {
				s += strings.Replace("N "+secret+"\n", "N", string(rune('1'+n%9))+strings.Repeat("0", n/9), 1)
			}
			return s
		}(), "line 17: more than 16 keys"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := ReadKeys(path)
		if c.want == "" {
			if err != nil || len(k.list) != 2 || k.list[0].id != 2 || len(k.list[1].bytes) != 64 {
				t.Errorf("%v, %v", k, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "5e5e") {
			t.Errorf("%.20q: %v, want %q", c.text, err, c.want)
		}
	}
}

// FuzzKeys: keys that are read are ones that can be used, and no error repeats what may be a key.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(oneKey + "\n" + otherKey))
	f.Add([]byte("# x\n\n1 zz"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseKeys(b)
		if err != nil {
			for _, word := range bytes.Fields(b) {
				if len(word) >= 2*leastKey && strings.Contains(err.Error(), string(word)) {
					t.Fatalf("parseKeys(%q) = %v", b, err)
				}
			}
			return
		}
		if len(k.list) == 0 || len(k.list) > mostKeys {
			t.Fatalf("parseKeys(%q): %d keys", b, len(k.list))
		}
		for _, x := range k.list {
			if x.id == 0 || len(x.bytes) < leastKey || len(x.bytes) > mostKey {
				t.Fatalf("parseKeys(%q): %+v", b, x)
			}
		}
	})
}

// sealed is a probe with a checksum and a digest by the first of keys, over switches.
func sealed(t testing.TB, keys *Keys, hops int) []byte {
	t.Helper()
	p := onePlan(INT21, false, make([]int, hops)...)
	ends := testEnds
	ends.Checksum = true
	if keys != nil {
		ends.Digests = new(Digester)
		ends.Digests.Use(keys)
	}
	x, err := NewTemplate(p, &p.Probes[0], 5, &ends)
	if err != nil {
		t.Fatal(err)
	}
	x.Seq = 77
	return walk(t, x.AppendFrame(nil, 42), INT21, hops)
}

// parserOf is one that asks for digests by keys.
func parserOf(keys *Keys) *Parser {
	ps := NewParser(testEnds.Mark)
	if keys != nil {
		ps.Keys = new(Digester)
		ps.Keys.Use(keys)
	}
	return ps
}

// TestDigest: a probe is accepted with a digest of any known key, and of no other. Keys can be replaced one after the
// other.
func TestDigest(t *testing.T) {
	one, both, new := keysOf(t, oneKey), keysOf(t, otherKey+"\n"+oneKey), keysOf(t, otherKey)
	wrong := keysOf(t, "1 "+strings.Repeat("0c", 32))
	for _, c := range []struct {
		name string
		by   *Keys
		at   *Keys
		lax  bool
		want Reason
	}{
		{"the same", one, one, false, OK}, {"the old one", one, both, false, OK}, {"the new one", both, new, false, OK},
		{"one that is gone", one, new, false, Unsigned}, {"another of the same number", wrong, one, false, BadDigest},
		{"none", nil, one, false, Unsigned}, {"none, for a while", nil, one, true, OK}, {"a wrong one, for a while", wrong, one, true, BadDigest},
		{"an agent without keys", one, nil, false, OK},
	} {
		ps := parserOf(c.at)
		ps.Lax = c.lax
		var a Arrival
		if why := ps.Parse(&a, sealed(t, c.by, 3)); why != c.want || why == OK && (a.Number != 5 || a.Seq != 77 || a.Sent != 42 || a.Hops != 3) {
			t.Errorf("%s: %v, want %v: %+v", c.name, why, c.want, a)
		}
	}
	// What is forged with right checksums is refused, and costs no memory.
	frame := sealed(t, one, 3)
	ps := parserOf(one)
	forged := bytes.Clone(frame)
	forged[len(forged)-SignedLen+14] ^= 1 // of the round
	forged[len(forged)-SignedLen+16] ^= 1 // of the time, so that the checksum stays right or not
	mend(forged)
	var a Arrival
	if why := ps.Parse(&a, forged); why != BadDigest {
		t.Errorf("a forged round: %v", why)
	}
	if n := testing.AllocsPerRun(1000, func() { ps.Parse(&a, frame) }); n != 0 {
		t.Errorf("%v allocations for a frame with a digest, want 0", n)
	}
	p := onePlan(INT21, false, 1, 2)
	ends := testEnds
	ends.Checksum, ends.Digests = true, parserOf(one).Keys
	x, err := NewTemplate(p, &p.Probes[0], 5, &ends)
	if err != nil {
		t.Fatal(err)
	}
	var room [256]byte
	if n := testing.AllocsPerRun(1000, func() { x.AppendFrame(room[:0], 42) }); n != 0 {
		t.Errorf("%v allocations to send a digest, want 0", n)
	}
}

// TestHMAC holds digests against crypto/hmac, over bytes that are put together here.
func TestHMAC(t *testing.T) {
	for _, text := range []string{oneKey, otherKey, "3 " + strings.Repeat("ab", 64)} {
		keys := keysOf(t, text)
		frame := sealed(t, keys, 3)
		ip := frame[14:]
		payload := frame[len(frame)-SignedLen:]
		m := hmac.New(sha256.New, keys.list[0].bytes)
		for _, part := range [][]byte{ip[12:16], ip[16:20], ip[20:24], ip[30:32], ip[36:38], ip[38:40], payload[:28]} {
			m.Write(part)
		}
		if want := m.Sum(nil)[:8]; !bytes.Equal(payload[28:], want) {
			t.Errorf("by key %d the digest is %x, want %x", keys.list[0].id, payload[28:], want)
		}
	}
}

// mend gives a frame of IPv4 the checksum of UDP that it must have.
func mend(frame []byte) {
	sum := frame[14+26 : 14+28]
	sum[0], sum[1] = 0, 0
	s := ^fold(udpSum(frame, 14))
	sum[0], sum[1] = byte(s>>8), byte(s)
}

func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// TestFlips changes every bit of a probe's packet. With checksums none is accepted, except for the bits of the checksum
// itself that mean there is none.
func TestFlips(t *testing.T) {
	for _, keys := range []*Keys{nil, keysOf(t, oneKey)} {
		good := sealed(t, keys, 3)
		ps := parserOf(keys)
		var a Arrival
		if why := ps.Parse(&a, good); why != OK || a.Unchecked {
			t.Fatal(why)
		}
		for bit := 8 * 12; bit < 8*len(good); bit++ { // from the type of the frame on
			bad := bytes.Clone(good)
			bad[bit/8] ^= 0x80 >> (bit % 8)
			if why := ps.Parse(&a, bad); why != Corrupt {
				t.Errorf("bit %d of byte %d: %v", bit%8, bit/8, why)
			}
		}
		// A switch that does not keep the checksum right takes it off. Then the header is held, and the digest where there is one.
		off := bytes.Clone(good)
		off[14+26], off[14+27] = 0, 0
		if why := ps.Parse(&a, off); why != OK || a.Unchecked != (keys == nil) {
			t.Errorf("without a checksum: %v, unchecked %v", why, a.Unchecked)
		}
		off[len(off)-1] ^= 1
		if why := ps.Parse(&a, off); why == OK != (keys == nil) {
			t.Errorf("without a checksum, changed: %v", why)
		}
	}
}

// TestFlippedOneOfAHundred: of 1 % of the frames one bit is changed and none is lost. None is counted as lost then, all that were changed are
// counted as corrupt, and no other path is seen.
func TestFlippedOneOfAHundred(t *testing.T) {
	for _, keys := range []*Keys{nil, keysOf(t, oneKey)} {
		for seed := range uint64(20) {
			flipped(t, keys, seed)
		}
	}
}
