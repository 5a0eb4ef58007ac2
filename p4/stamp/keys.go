package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
)

// Keys are the secrets of authenticated sessions, for one goroutine. Packets do not name the key that signed them.
type Keys struct {
	macs []hash.Hash
	sum  [sha256.Size]byte
}

// NewKeys takes secrets, of which the first is for sending and all are tried on what comes.
func NewKeys(secrets [][]byte) *Keys {
	k := new(Keys)
	for _, s := range secrets {
		k.macs = append(k.macs, hmac.New(sha256.New, s))
	}
	return k
}

// mac is the digest of parts, one behind the other, by the key at a place.
func (k *Keys) mac(place int, parts ...[]byte) []byte {
	m := k.macs[place]
	m.Reset()
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(k.sum[:0])[:macLen]
}

// Sign writes the digest of an authenticated packet into its place.
func (k *Keys) Sign(packet []byte, place int) {
	const at = signedLen - macLen
	copy(packet[at:signedLen], k.mac(place, packet[:at]))
}

// Verify returns the place of the key that signed a packet of at least signedLen bytes, or -1.
func (k *Keys) Verify(packet []byte) (place int) {
	const at = signedLen - macLen
	for place := range k.macs {
		if hmac.Equal(k.mac(place, packet[:at]), packet[at:signedLen]) {
			return place
		}
	}
	return -1
}

// open finds the place of the key that a packet was signed with; without keys, of packets without digests, there is nothing to find.
func (k *Keys) open(packet []byte) (place int, err error) {
	if k == nil {
		return 0, nil
	}
	if err := sized(packet, signedLen); err != nil {
		return 0, err
	}
	if place = k.Verify(packet); place < 0 {
		return 0, refuse("hmac", signedLen-macLen, BadMAC)
	}
	return place, nil
}

// protection is what a digest over extensions guarantees.
type protection struct {
	at    int  // of the extension with the digest; -1 without any
	whole bool // the digest is right, and covers all but padding
}

// protected looks for the digest over the extensions of a packet and verifies it. Only padding may follow it, and only padding needs none.
func (k *Keys) protected(packet []byte, place int) protection {
	tail := packet[signedLen:]
	p := protection{at: -1, whole: true}
	for t := range tlvs(tail) {
		switch {
		case t.Type == extraPadding:
		case p.at >= 0: // also another digest
			p.whole = false
		case t.Type == HMAC && len(t.Value) == macLen && !t.cut:
			p.at = t.At
			p.whole = p.whole && hmac.Equal(k.mac(place, packet[:4], tail[:t.At]), t.Value)
		case t.Type == HMAC:
			p.at, p.whole = t.At, false
		}
	}
	if p.at < 0 {
		for t := range tlvs(tail) {
			p.whole = p.whole && t.Type == extraPadding
		}
	}
	return p
}

// protect writes the digest over extensions into the one at a place of the tail.
func (k *Keys) protect(packet []byte, at, place int) {
	tail := packet[signedLen:]
	copy(tail[at+tlvLen:at+tlvLen+macLen], k.mac(place, packet[:4], tail[:at]))
}
