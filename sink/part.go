package sink

// PartLines implements Part of a [Parter] whose payloads are lines. next cuts the first one off, key and series say of a
// line which others it must not overtake and which measurement it is of.
func PartLines(payload []byte, next func(payload []byte) (line, rest []byte), key, series func(line []byte) string, held func(key string) bool) (behind, rest Refusal) {
	for len(payload) > 0 {
		var line []byte
		line, payload = next(payload)
		to := &rest
		if held(key(line)) {
			to = &behind
		}
		to.Payload = append(to.Payload, line...)
		to.Points++
		to.Series = AddSeries(to.Series, series(line), 1)
	}
	return behind, rest
}
