package decode

import "iter"

// Element is a field of a [Template]: its number, and its length in a record.
type Element struct {
	PEN    uint32 // of the enterprise whose number ID is; 0 for those of IANA
	ID     uint16
	Length uint16 // bytes; [VariableLength] if each record has its own
}

// VariableLength is the length of an element whose length is before its value in each record.
const VariableLength = 65535

// Template is the layout of the records of IPFIX and NetFlow 9 that name it. It never changes.
type Template struct {
	Version uint16 // 10 is IPFIX, 9 NetFlow 9, whose scopes have numbers of their own
	ID      uint16
	Domain  uint32 // observation domain; NetFlow 9: source id
	Scopes  int    // how many of the first elements say what an options record is about; 0 for data
	Fields  []Element
	// Delays reads the delays of a record; nil where the template has none.
	Delays func(record []byte) (PathDelay, bool)
}

// Values returns the elements of a record with their bytes, up to the first one that record does not hold.
func (t *Template) Values(record []byte) iter.Seq2[*Element, []byte] {
	return func(yield func(*Element, []byte) bool) {
		for i := range t.Fields {
			e := &t.Fields[i]
			n, at, ok := ValueLength(e, record, 0)
			if !ok || !yield(e, record[at:at+n]) {
				return
			}
			record = record[at+n:]
		}
	}
}

// ValueLength returns how long the value of e is in a record of which at bytes were read, and where it begins. It is
// false where the record ends before.
func ValueLength(e *Element, record []byte, at int) (n, begin int, ok bool) {
	n = int(e.Length)
	if n == VariableLength {
		if at >= len(record) {
			return 0, at, false
		}
		if n = int(record[at]); n == 255 {
			if len(record)-at < 3 {
				return 0, at, false
			}
			n = int(record[at+1])<<8 | int(record[at+2])
			at += 2
		}
		at++
	}
	return n, at, n <= len(record)-at
}
