package kafka

import (
	"bytes"
	"errors"
	"testing"
)

func samplePayload() []byte {
	p := newPayload(-7, true)
	p.add(toWindows, 3, []byte("head"), []byte("value"))
	p.add(toReports, 300, nil, bytes.Repeat([]byte("x"), 200))
	return p.b
}

// Spools outlive the programs that wrote them: this is a payload of version 1.
func TestPayloadOfVersion1(t *testing.T) {
	c, err := readPayload([]byte("\x01\x01\x0d" + "\x00\x03\x04head\x05value" + "\x01\xac\x02\x00\x01x"))
	if err != nil || c.label != -7 || !c.clockOff || len(c.records) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if r := c.records[0]; r.topic != toWindows || r.partition != 3 || string(r.head) != "head" || string(r.value) != "value" {
		t.Errorf("%+v", r)
	}
	if r := c.records[1]; r.topic != toReports || r.partition != 300 || len(r.head) != 0 || string(r.value) != "x" {
		t.Errorf("%+v", r)
	}
}

func TestPayload(t *testing.T) {
	b := samplePayload()
	c, err := readPayload(b)
	if err != nil || c.label != -7 || !c.clockOff || len(c.records) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if r := c.records[0]; r.topic != toWindows || r.partition != 3 || string(r.head) != "head" || string(r.value) != "value" {
		t.Errorf("%+v", r)
	}
	if r := c.records[1]; r.topic != toReports || r.partition != 300 || len(r.head) != 0 || len(r.value) != 200 {
		t.Errorf("%+v", r)
	}
	// Cut short, it is read up to a record, or refused: never read otherwise.
	whole := 0
	for n := range b {
		got, err := readPayload(b[:n])
		if e := (*payloadError)(nil); err != nil && (!errors.As(err, &e) || e.Offset > n) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		if err == nil {
			whole++
			if len(got.records) >= 2 {
				t.Errorf("the first %d bytes have %d records", n, len(got.records))
			}
		}
	}
	if whole != 2 { // before the first record, and behind it
		t.Errorf("%d beginnings are whole, want 2", whole)
	}
	for _, bad := range []struct {
		b    []byte
		want error
	}{
		{nil, errShort},
		{[]byte{9, 0, 0}, errVersion},
		{[]byte{1, 0, 0, 5}, errRange},
		{[]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0}, errRange},
		{[]byte{1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, errShort},
	} {
		if _, err := readPayload(bad.b); !errors.Is(err, bad.want) {
			t.Errorf("%x: %v, want %v", bad.b, err, bad.want)
		}
	}
}

// The read records equal the written ones, whatever is in the spool.
func FuzzPayload(f *testing.F) {
	f.Add(samplePayload())
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readPayload(b)
		if err != nil {
			return
		}
		p := newPayload(c.label, c.clockOff)
		for _, r := range c.records {
			p.add(r.topic, r.partition, r.head, r.value)
		}
		second, err := readPayload(p.b)
		if err != nil || second.label != c.label || second.clockOff != c.clockOff || len(second.records) != len(c.records) {
			t.Fatalf("%v: %+v, want %+v", err, second, c)
		}
		for i, r := range c.records {
			if a := second.records[i]; a.topic != r.topic || a.partition != r.partition || !bytes.Equal(a.head, r.head) || !bytes.Equal(a.value, r.value) {
				t.Fatalf("%+v, want %+v", a, r)
			}
		}
	})
}
