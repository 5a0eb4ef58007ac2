// Package ask holds the types of the API's answers, which the page fills, and the client that asks a running collector or
// console for them. The client reads hops, flows and findings into types of its own, which check each node as they read
// it, and prints them as text.
package ask
