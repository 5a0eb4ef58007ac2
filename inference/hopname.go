package inference

// HopName is a hop in a text, which has to be one.
type HopName struct{ HopKey }

// UnmarshalText reads the hop.
func (h *HopName) UnmarshalText(text []byte) (err error) {
	h.HopKey, err = ParseHop(string(text))
	return err
}
