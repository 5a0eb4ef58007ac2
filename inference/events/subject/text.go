package subject

import "fmt"

// Plural returns "1 packet" or "3 packets".
func Plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// First returns the first of a list.
func First[T any](list []T, most int) []T { return list[:min(len(list), most)] }
