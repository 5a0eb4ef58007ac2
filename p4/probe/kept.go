package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// keptMark begins the file of a kept plan; behind it come the CRC-32C of the plan, 4 bytes, big-endian, and the plan. A plan alone
// does not begin so: the first byte would be a field of a wire type that there is not.
const keptMark = "\x07hopscope plan 1\n"

var errKept = errors.New("it was cut or changed: its checksum is another one")

// Seal puts the mark and the checksum before a plan: a message that was cut where a field ends is a shorter plan.
func Seal(plan []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte(keptMark), crc32.Checksum(plan, castagnoli))
	return append(b, plan...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Unseal returns the plan of a file. Files from before there were checksums are accepted too.
func Unseal(b []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptMark))
	if !ok {
		return b, nil
	}
	if len(rest) < 4 || crc32.Checksum(rest[4:], castagnoli) != binary.BigEndian.Uint32(rest) {
		return nil, errKept
	}
	return rest[4:], nil
}
