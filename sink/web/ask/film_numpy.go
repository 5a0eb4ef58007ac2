package ask

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteNumPy writes a film as an array of NumPy (NPY format 1.0): float32 of windows by rows by columns, NaN where a
// cell is absent.
func (f *Film) WriteNumPy(w io.Writer) error {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }", len(f.Windows), len(f.Nodes), len(f.Nodes))
	const head = 10                                                // of the magic, the version, and the length of the header
	header += strings.Repeat(" ", 63-(head+len(header))%64) + "\n" // what follows is aligned to 64 bytes
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString("\x93NUMPY\x01\x00") // errors stay in out until it is flushed
	out.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	out.WriteString(header)
	var matrix []float32
	var b [4]byte
	for k := range f.Windows {
		matrix = f.Matrix(k, matrix)
		for _, v := range matrix {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			out.Write(b[:])
		}
	}
	return out.Flush()
}
