package state

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// noun has a field of every type of a coder.
type noun struct {
	version    uint8
	small      uint8
	short      uint16
	word       uint32
	long, most uint64
	count      int
	at, since  int64
	set, unset bool
	flags      [3]bool
	text       string
	blob       []byte
	array      [5]byte
	addr       decode.Addr
	flow       decode.FlowKey
	f64        float64
	f32        float32
	list       []uint16
	inner      []*noun
	members    map[string]int64
	part       []uint32
	rest       []byte
}

func (n *noun) code(c *Coder) {
	n.version = c.Version(2, 3)
	Fixed(c, "small", &n.small)
	FixedTo(c, "short", 1000, &n.short)
	Fixed(c, "word", &n.word)
	Fixed(c, "long", &n.long)
	Fixed(c, "since", &n.since)
	UintTo(c, "most", 1<<40, &n.most)
	Uint(c, "count", &n.count)
	Int(c, "at", &n.at)
	c.Flag("flag", &n.set, &n.unset)
	c.Flags("flags", &n.flags[0], &n.flags[1], &n.flags[2])
	c.Text("text", 20, &n.text)
	c.Blob("blob", &n.blob)
	c.Bytes("array", n.array[:])
	c.Addr("address", &n.addr)
	c.Flow("flow", &n.flow)
	c.Float64("f64", -10, 10, &n.f64)
	c.Float32("f32", -10, 10, &n.f32)
	List(c, "list", 4, 1, &n.list, func(v *uint16, c *Coder) { Uint(c, "item", v) })
	Pointers(c, "inner", 1, 10, &n.inner, func(m *noun, c *Coder) { c.Text("name", 9, &m.text) })
	if c.Reading() {
		n.members = map[string]int64{}
	}
	Map(c, "members", 3, 2, n.members, cmp.Compare[string], func(k *string, v *int64, c *Coder) {
		c.Text("member", 9, k)
		Int(c, "member", v)
	})
	c.Part("part", func(c *Coder) {
		Items(c, "items", 3, &n.part, func(v *uint32, c *Coder) { Fixed(c, "item", v) })
	})
	c.Rest(&n.rest)
}

func example() *noun {
	return &noun{
		version: 3, small: 200, short: 1000, word: math.MaxUint32, long: math.MaxUint64, most: 1 << 40, count: math.MaxInt, at: math.MinInt64, since: -7,
		set: true, flags: [3]bool{true, false, true}, text: "a text", blob: []byte("blob"), array: [5]byte{1, 2, 3, 4, 5},
		addr: decode.AddrFrom4([]byte{192, 0, 2, 1}), flow: decode.FlowKey{Src: decode.Addr{15: 1}, SrcPort: 0x1234, DstPort: 80, Proto: 6, IPVersion: 4},
		f64: -2.5, f32: 0.1, list: []uint16{0, 128, 65535}, inner: []*noun{{text: "inner name"[:5]}, {}}[:1], members: map[string]int64{"a": -1, "b": 0, "c": 1 << 40},
		part: []uint32{7, 8}, rest: []byte("rest"),
	}
}

// An encoding is decoded to the same. It is refused wherever it is cut, unless the cut is in a part that has no length
// of its own.
func TestCoder(t *testing.T) {
	want := example()
	b := Append([]byte("x"), want.code)[1:]
	var got noun
	if err := Read("noun", b, got.code); err != nil || !reflect.DeepEqual(&got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	if second := Append(nil, got.code); !bytes.Equal(second, b) {
		t.Errorf("% x is written again as % x", b, second)
	}
	for n := range len(b) - len(want.rest) {
		var at *Error
		if err := Read("noun", b[:n], new(noun).code); !errors.As(err, &at) || !errors.Is(err, ErrShort) || at.Offset > n || at.What != "noun" {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
	}
}

// Layouts that are stored somewhere do not change.
func TestLayout(t *testing.T) {
	n := uint64(300)
	i, three, w := int64(-2), []uint16{1, 2, 300}, uint32(0x01020304)
	got := Append(nil, func(c *Coder) {
		Uint(c, "", &n)
		Int(c, "", &i)
		Fixed(c, "", &w)
		List(c, "", 9, 1, &three, func(v *uint16, c *Coder) { Uint(c, "", v) })
		c.Part("", func(c *Coder) { Uint(c, "", &n) })
	})
	if want := []byte{0xac, 2, 3, 4, 3, 2, 1, 3, 1, 2, 0xac, 2, 2, 0xac, 2}; !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

func TestRefused(t *testing.T) {
	var u8 uint8
	var u32 uint32
	var count int
	var list []uint8
	item := func(v *uint8, c *Coder) { Fixed(c, "item", v) }
	members := map[uint8]uint8{}
	for name, tt := range map[string]struct {
		b    []byte
		code func(*Coder)
		want error
		at   int
	}{
		"another version":          {[]byte{4}, func(c *Coder) { c.Version(2, 3) }, ErrVersion, 0},
		"an older version":         {[]byte{1}, func(c *Coder) { c.Version(2, 3) }, ErrVersion, 0},
		"nothing":                  {nil, func(c *Coder) { c.Version(2, 3) }, ErrShort, 0},
		"a byte too many":          {[]byte{3, 0}, func(c *Coder) { c.Version(2, 3) }, ErrRange, 1},
		"a number too large":       {[]byte{7, 0xff, 0xff, 0xff, 0xff, 0x1f}, func(c *Coder) { Fixed(c, "", &u8); Uint(c, "", &u32) }, ErrRange, 1},
		"a number above its most":  {[]byte{9}, func(c *Coder) { UintTo(c, "", 8, &u32) }, ErrRange, 0},
		"a byte above its most":    {[]byte{9}, func(c *Coder) { FixedTo(c, "", 8, &u8) }, ErrRange, 0},
		"a long form":              {[]byte{0x80, 0}, func(c *Coder) { Uint(c, "", &u32) }, ErrRange, 0},
		"a negative count":         {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, func(c *Coder) { Uint(c, "", &count) }, ErrRange, 0},
		"more than 64 bits":        {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, func(c *Coder) { Uint(c, "", &count) }, ErrRange, 0},
		"a flag of two":            {[]byte{2}, func(c *Coder) { c.Flag("", new(bool)) }, ErrRange, 0},
		"a flag that is not known": {[]byte{4}, func(c *Coder) { c.Flags("", new(bool), new(bool)) }, ErrRange, 0},
		"a long text":              {[]byte("\x03abc"), func(c *Coder) { c.Text("", 2, new(string)) }, ErrRange, 0},
		"no number":                {[]byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f}, func(c *Coder) { c.Float64("", -1, 1, new(float64)) }, ErrRange, 0},
		"a list too long":          {[]byte{3, 1, 2, 3}, func(c *Coder) { List(c, "", 2, 1, &list, item) }, ErrRange, 0},
		"a list of too few bytes":  {[]byte{3, 1, 2}, func(c *Coder) { List(c, "", 9, 1, &list, item) }, ErrShort, 0},
		"too many items":           {[]byte{1, 2, 3}, func(c *Coder) { Items(c, "", 2, &list, item) }, ErrRange, 2},
		"keys out of order": {[]byte{2, 5, 5, 5, 5}, func(c *Coder) {
			Map(c, "", 9, 2, members, cmp.Compare[uint8], func(k, v *uint8, c *Coder) { Fixed(c, "", k, v) })
		}, ErrRange, 3},
		"a part that ends early": {[]byte{2, 1}, func(c *Coder) { c.Part("", func(c *Coder) { Fixed(c, "", &u8) }) }, ErrShort, 1},
		"a part with more":       {[]byte{2, 1, 1}, func(c *Coder) { c.Part("", func(c *Coder) { Fixed(c, "", &u8) }) }, ErrRange, 2},
		"a part within a part":   {[]byte{1, 2, 1, 1}, func(c *Coder) { c.Part("", func(c *Coder) { c.Part("", func(c *Coder) { Fixed(c, "", &u8) }) }) }, ErrShort, 2},
		"a check":                {[]byte{1, 2}, func(c *Coder) { Fixed(c, "", &u8, &u8); c.Check("", u8 == 1) }, ErrRange, 1},
	} {
		var at *Error
		if err := Read("it", tt.b, tt.code); !errors.As(err, &at) || !errors.Is(err, tt.want) || at.Offset != tt.at {
			t.Errorf("%s: %v, want %v at byte %d", name, err, tt.want, tt.at)
		}
	}
}

// Reading takes memory in proportion to the bytes that are there.
func TestBounded(t *testing.T) {
	b := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	n := testing.AllocsPerRun(10, func() {
		var list []noun
		var text string
		var blob []byte
		err := Read("it", b, func(c *Coder) { List(c, "", math.MaxInt, 1, &list, (*noun).code) })
		err = errors.Join(err, Read("it", b, func(c *Coder) { c.Text("", math.MaxInt, &text) }), Read("it", b, func(c *Coder) { c.Blob("", &blob) }))
		if err == nil || cap(list)+len(text)+cap(blob) > 0 {
			t.Errorf("%v, and %d items, %d bytes of text and %d others are there", err, cap(list), len(text), cap(blob))
		}
	})
	if n > 30 {
		t.Errorf("%v allocations for what is refused", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Append(nil, example().code))
	f.Add(Append(nil, (&noun{version: 2}).code))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n noun
		if err := Read("noun", b, n.code); err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(b) {
				t.Fatalf("Read(%x) = %v", b, err)
			}
			return
		}
		if b[0] = 3; !bytes.Equal(Append(nil, n.code), b) { // which is the version that is written
			t.Fatalf("Read(%x) and Append give %x", b, Append(nil, n.code))
		}
	})
}
