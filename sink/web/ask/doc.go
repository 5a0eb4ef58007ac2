// Package ask holds the answers of the API, and the client that asks a running collector or console for them. The page
// fills the types whose names end with Row, List and Answer. The client reads hops, flows and findings into types of its
// own, which check each node as they read it, and prints them as text.
package ask
