package opt

// Never is a stop function of a search that has no time limit: it is used in place of nil.
func Never(stop func() bool) func() bool {
	if stop != nil {
		return stop
	}
	return func() bool { return false }
}
