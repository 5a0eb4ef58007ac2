// Package shard keeps what one shard of a collector knows: its flows with the sketches of their hops, and the hops of
// the open window.
package shard
