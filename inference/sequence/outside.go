package sequence

// outside counts the different exporters without a place. Those are exporters of which a report was refused since the
// last cut, as far as its memory reaches.
type outside struct {
	most     int
	keys     map[uint64]struct{} // hashes of exporters
	more     bool                // others had no room in keys
	last     int                 // exporters at the last cut that found any
	lastMore bool
}

// mostOutside is the number of exporters without a place that are distinguished in a window, by all trackers together.
const mostOutside = 8192

// add counts an exporter that has no place.
func (o *outside) add(hash uint64) {
	if len(o.keys) >= o.most {
		o.more = true
		return
	}
	if o.keys == nil {
		o.keys = map[uint64]struct{}{}
	}
	o.keys[hash] = struct{}{}
}

// drop takes back an exporter that has got a place.
func (o *outside) drop(hash uint64) {
	delete(o.keys, hash)
}

// cut begins a new window.
func (o *outside) cut() {
	if len(o.keys) > 0 {
		o.last, o.lastMore = len(o.keys), o.more
		clear(o.keys)
	}
	o.more = false
}
