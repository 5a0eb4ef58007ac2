package ask

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// WriteArrow writes a film as a file of Arrow (IPC file format): a row for each direction with a value, and a batch for
// each window. Columns are the end of the window, both switches by number and name, their row and column in the
// picture, and the value.
func (f *Film) WriteArrow(w io.WriteSeeker) error {
	meta := arrow.NewMetadata([]string{"metric", "unit"}, []string{f.Metric, f.Unit})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "end", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{Name: "from", Type: arrow.PrimitiveTypes.Uint32}, {Name: "to", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "from_name", Type: arrow.BinaryTypes.String}, {Name: "to_name", Type: arrow.BinaryTypes.String},
		{Name: "row", Type: arrow.PrimitiveTypes.Int32}, {Name: "column", Type: arrow.PrimitiveTypes.Int32},
		{Name: "value", Type: arrow.PrimitiveTypes.Float32},
	}, &meta)
	out, err := ipc.NewFileWriter(w, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for k, end := range f.Windows {
		for i, v := range f.Values[k] {
			if v != v {
				continue
			}
			from, to := f.Directions[i][0], f.Directions[i][1]
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(end))
			b.Field(1).(*array.Uint32Builder).Append(f.Nodes[from].ID)
			b.Field(2).(*array.Uint32Builder).Append(f.Nodes[to].ID)
			b.Field(3).(*array.StringBuilder).Append(f.Nodes[from].Name)
			b.Field(4).(*array.StringBuilder).Append(f.Nodes[to].Name)
			b.Field(5).(*array.Int32Builder).Append(int32(from))
			b.Field(6).(*array.Int32Builder).Append(int32(to))
			b.Field(7).(*array.Float32Builder).Append(float32(v))
		}
		record := b.NewRecord()
		err := out.Write(record)
		record.Release()
		if err != nil {
			return err
		}
	}
	return out.Close()
}
