package parquet

import (
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/hopscope/hopscope/sink"
)

// schemaVersion is raised when a column changes its name, type or meaning. Columns that are added leave it alone.
const schemaVersion = "1"

type kind uint8

const (
	integer kind = iota
	float
	text
	moment // ns since 1970
)

// column describes a column of a dataset. A required one has a value in every row.
type column struct {
	name     string
	kind     kind
	required bool
}

// dataset is a kind of rows.
type dataset struct {
	name    string
	columns []column
	index   map[string]int
}

func newDataset(name string, columns []column) *dataset {
	d := &dataset{name: name, columns: columns, index: map[string]int{}}
	for i, c := range columns {
		d.index[c.name] = i
	}
	return d
}

// datasetOf makes the dataset of a series: time, tags, fields.
func datasetOf(s *sink.Series) *dataset {
	columns := []column{{"time", moment, true}}
	for _, t := range s.Tags {
		columns = append(columns, column{t.Key, text, true})
	}
	for _, f := range s.Fields {
		columns = append(columns, column{f.Key, kindOf(f.Kind), false})
	}
	return newDataset(s.Measurement, columns)
}

func kindOf(k sink.FieldKind) kind {
	switch k {
	case sink.Int:
		return integer
	case sink.Float:
		return float
	default:
		return text
	}
}

// schema is the Parquet form of d.
func (d *dataset) schema() (*schema.GroupNode, error) {
	var fields schema.FieldList
	for _, c := range d.columns {
		rep := parquet.Repetitions.Optional
		if c.required {
			rep = parquet.Repetitions.Required
		}
		var n schema.Node
		var err error
		switch c.kind {
		case integer:
			n = schema.NewInt64Node(c.name, rep, -1)
		case float:
			n = schema.NewFloat64Node(c.name, rep, -1)
		case moment:
			// Not marked as UTC, though it is: DuckDB cuts a time with a zone to microseconds, and the nanoseconds
			// are part of a point's identity.
			n, err = schema.NewPrimitiveNodeLogical(c.name, rep, schema.NewTimestampLogicalType(false, schema.TimeUnitNanos), parquet.Types.Int64, 0, -1)
		default:
			n, err = schema.NewPrimitiveNodeLogical(c.name, rep, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)
		}
		if err != nil {
			return nil, err
		}
		fields = append(fields, n)
	}
	return schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
}

// table holds rows of one dataset, column by column, in the form that a Parquet writer takes. A column is its values
// and, if it is optional, a definition level for each row.
type table struct {
	set     *dataset
	rows    int
	bytes   int // of memory, about
	columns []values
	texts   map[string]parquet.ByteArray // one copy of each text
}

type values struct {
	ints   []int64
	floats []float64
	texts  []parquet.ByteArray
	defs   []int16 // 1 where there is a value; nil for required columns
	filled int     // rows
}

func newTable(d *dataset) *table {
	return &table{set: d, columns: make([]values, len(d.columns)), texts: map[string]parquet.ByteArray{}}
}

// clear empties the table and keeps its memory, except that of the texts.
func (t *table) clear() {
	for i := range t.columns {
		v := &t.columns[i]
		clear(v.texts)
		*v = values{ints: v.ints[:0], floats: v.floats[:0], texts: v.texts[:0], defs: v.defs[:0]}
	}
	clear(t.texts)
	t.rows, t.bytes = 0, 0
}

// setInt, setFloat and setText give the row that is being filled a value. A second one for the same column is ignored.
func (t *table) setInt(col int, x int64) {
	v := &t.columns[col]
	if v.filled > t.rows {
		return
	}
	v.ints = append(v.ints, x)
	t.filled(col, v, 8)
}

func (t *table) setFloat(col int, x float64) {
	v := &t.columns[col]
	if v.filled > t.rows {
		return
	}
	v.floats = append(v.floats, x)
	t.filled(col, v, 8)
}

func (t *table) setText(col int, s string) { t.setBytes(col, t.intern(s)) }

// intern returns the table's one copy of s.
func (t *table) intern(s string) parquet.ByteArray {
	b, ok := t.texts[s]
	if !ok {
		b = parquet.ByteArray(s)
		if b == nil {
			b = parquet.ByteArray{}
		}
		t.texts[s] = b
		t.bytes += 2*len(s) + 64
	}
	return b
}

func (t *table) setBytes(col int, b parquet.ByteArray) {
	v := &t.columns[col]
	if v.filled > t.rows {
		return
	}
	v.texts = append(v.texts, b)
	t.filled(col, v, 24)
}

func (t *table) filled(col int, v *values, bytes int) {
	if !t.set.columns[col].required {
		v.defs = append(v.defs, 1)
	}
	v.filled++
	t.bytes += bytes
}

// endRow completes the row: null, or zero in required columns, where nothing was set.
func (t *table) endRow() {
	for i := range t.columns {
		v := &t.columns[i]
		if v.filled > t.rows {
			continue
		}
		if !t.set.columns[i].required {
			v.defs = append(v.defs, 0)
			v.filled++
			continue
		}
		if t.set.columns[i].kind == text {
			t.setText(i, "")
		} else {
			t.setInt(i, 0)
		}
	}
	t.rows++
	t.bytes += 2 * len(t.columns)
}
