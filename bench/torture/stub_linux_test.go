//go:build torture

package torture

func clockRows() []row { return nil }
