// Package ask is the client of a running collector or console. It asks for hops, flows and findings, and prints the
// answers as text.
package ask
