// Package ask holds the types of the API's answers, which the page fills, and the client that asks a running collector or
// console for them. The client reads hops, flows and findings into types of its own, which check each node as they read
// it, and prints them as text. It writes a [Film] as files for programs that compute on pictures.
//
// [Past] answers about a range of time out of the history on disk, with the types of the live answers. Their windows are columns
// of one resolution, which the answer states with the number of windows merged in each. A column without a window is a gap,
// whose values are null. Sentences state what a range lacks.
//
// [Desk] makes the changes that operators request.
package ask
