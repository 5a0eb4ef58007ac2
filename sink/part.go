package sink

// PartLines implements Part of a [Parter] whose payloads are lines. Function next cuts the first line off. A line
// waits behind others with the same key. Its series is its measurement.
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
