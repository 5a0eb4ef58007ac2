package traffic

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteSearch writes what [Search] found, as text or as json.
func WriteSearch(w io.Writer, format string, steps []Step, best Step) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(map[string]any{"steps": steps, "keeps_up_with": best.Rate, "sender_was_the_limit": best.KeepsUp && best.senderLimited()})
	}
	if best.KeepsUp {
		least := ""
		if best.senderLimited() {
			least = "at least "
		}
		_, err := fmt.Fprintf(w, "This machine keeps up with %s%.0f reports/s, sending them included.\n", least, best.Rate)
		return err
	}
	_, err := fmt.Fprintln(w, "This machine kept up with none of these rates.")
	return err
}
