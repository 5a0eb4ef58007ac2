package sink

// Point is one point of one series: a measurement, its tags in the order of their keys, its fields, and the end of its
// window. Measurement, tags and time are its identity; writing the same point twice changes nothing.
type Point struct {
	Measurement string
	Tags        []Tag
	Fields      []Field
	Time        int64 // ns since 1970
}

// Tag is an indexed label of a series.
type Tag struct{ Key, Value string }

// FieldKind selects the value of a Field.
type FieldKind uint8

// The kinds of values.
const (
	Int FieldKind = iota
	Float
	String
)

// Field is one value. Int holds integers of either kind of meaning: counts, bytes, nanoseconds.
type Field struct {
	Key   string
	Kind  FieldKind
	Int   int64
	Float float64
	Str   string
}

// IntField makes an integer field.
func IntField(key string, v int64) Field { return Field{Key: key, Kind: Int, Int: v} }

// FloatField makes a floating point field.
func FloatField(key string, v float64) Field { return Field{Key: key, Kind: Float, Float: v} }

// StringField makes a text field.
func StringField(key, v string) Field { return Field{Key: key, Kind: String, Str: v} }

// AppendPoints appends points with one, the function that appends a single point. It counts the fields that cannot be
// written in that form, and the points without any other field.
func AppendPoints(dst []byte, points []Point, one func([]byte, *Point) (out []byte, dropped int)) (out []byte, fieldsDropped, pointsDropped uint64) {
	for i := range points {
		before := len(dst)
		var dropped int
		dst, dropped = one(dst, &points[i])
		fieldsDropped += uint64(dropped)
		if len(dst) == before {
			pointsDropped++
		}
	}
	return dst, fieldsDropped, pointsDropped
}
