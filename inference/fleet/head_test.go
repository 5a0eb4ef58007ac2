package fleet

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/internal/testkit"
)

func example() Head {
	return Head{
		Kind: Close, From: "collector-1", Boot: 1 << 63, Seq: 7, Slice: 15, Start: -10, End: 1700000000000000000,
		Part: 1, Parts: 2, Reports: 12, Raw: []uint64{0, 300, 1 << 40}, Revision: 3,
		Sources: []Source{{"a", 1, 2}, {"", 0, 0}}, Missing: []string{"b", "c"}, Dead: []string{"c"}, Owners: []uint32{1, 0},
		Generation: 4, Offset: 99, Sum: Sum([]byte("x")),
	}
}

// The bytes of heads are those of the programs before.
func TestHeadOfBefore(t *testing.T) {
	for name, h := range map[string]Head{"head": example(), "head-zeros": {Kind: Mark, Raw: []uint64{0}, Owners: []uint32{0}, Dead: []string{""}}} {
		testkit.SameState(t, name, h.Append(nil), func(b []byte) ([]byte, error) {
			got, err := ReadHead(b)
			return got.Append(nil), err
		})
	}
}

func TestHead(t *testing.T) {
	h := example()
	b := h.Append(nil)
	got, err := ReadHead(b)
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Fatalf("ReadHead = %+v, %v; want %+v", got, err, h)
	}
	for n := range b {
		if _, err := ReadHead(b[:n]); err != nil {
			var at *state.Error
			if !errors.As(err, &at) || at.Offset > n {
				t.Errorf("cut at %d: error %v", n, err)
			}
		}
	}
	sealed := func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[checkAt+2:], headCheck(b))
		return b
	}
	later := binary.AppendUvarint(append([]byte{}, b...), 1000)
	later = sealed(append(later, 3, 'n', 'e', 'w'))
	if got, err := ReadHead(later); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("with a field of a later version: %+v, %v", got, err)
	}
	if got, err := ReadHead(append(append([]byte{}, b[:checkAt]...), b[checked:]...)); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("as former versions wrote it: %+v, %v", got, err)
	}
	b[0]++
	if _, err := ReadHead(b); !errors.Is(err, state.ErrVersion) {
		t.Errorf("another version: %v, want %v", err, state.ErrVersion)
	}
}

// A head of which one or two bits are others, or a byte was never written, is refused; so is one that is cut.
func TestHeadDamaged(t *testing.T) {
	h := example()
	b := h.Append(nil)
	read := func(what string, bits ...int) {
		got, err := ReadHead(b)
		if err == nil {
			t.Errorf("%s %v: %+v was read", what, bits, got)
		}
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		read("bit", i)
		for j := range i {
			b[j/8] ^= 1 << (j % 8)
			read("bits", i, j)
			b[j/8] ^= 1 << (j % 8)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for i := range b { // a page that was never written
		if was := b[i]; was != 0 {
			b[i] = 0
			read("byte", i)
			b[i] = was
		}
	}
	for n := range b {
		if _, err := ReadHead(b[:n]); err == nil {
			t.Errorf("cut at %d: was read", n)
		}
	}
}

func FuzzHead(f *testing.F) {
	h := example()
	b := h.Append(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHead(b)
		if err != nil {
			return
		}
		if got, err := ReadHead(h.Append(nil)); err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("%+v became %+v, %v", h, got, err)
		}
	})
}
