package packet

import (
	"fmt"
	"strings"
)

// Names gives the marks for people, "UDP 2222" and so on.
func (w *Where) Names() (names []string) {
	for _, p := range w.Ports {
		names = append(names, fmt.Sprintf("UDP %d", p))
	}
	if len(w.EtherTypes) > 0 {
		types := make([]string, len(w.EtherTypes))
		for i, t := range w.EtherTypes {
			types[i] = fmt.Sprintf("%#04x", t)
		}
		names = append(names, "EtherType "+strings.Join(types, ", "))
	}
	if w.Mark != "" {
		names = append(names, w.Mark)
	}
	return names
}
