// Package vectors holds worked examples of the formats, byte by byte, that decoders, encoders and data-plane programs
// are tested with. README.md says what each of them is.
package vectors

import (
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.hex
var files embed.FS

// Names lists the vectors.
func Names() []string {
	list, _ := fs.Glob(files, "*.hex") // the pattern is well formed
	for i, name := range list {
		list[i] = strings.TrimSuffix(name, ".hex")
	}
	return list
}

// Bytes gives a copy of the vector called name.
func Bytes(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ".hex")
	if err != nil {
		return nil, fmt.Errorf("no vector %q: %w", name, err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for _, field := range strings.Fields(line) {
			digits.WriteString(field)
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		return nil, fmt.Errorf("vector %s: %w", name, err)
	}
	return b, nil
}
