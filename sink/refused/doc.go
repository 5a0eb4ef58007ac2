// Package refused keeps the points that a store refused, with the store's words, until an operator has mended the cause and
// sends them again, or until their folder is full.
//
// # Files
//
// Each record of a spool of which points were refused is one file, named by the batch and the place of the record in it:
//
//	00000001789012345678-000000.refused
//
// so that a record that is refused again after a crash takes the place of what it left before. A file is the magic
// "hopsref1", the length of the body and its CRC-32C in eight and four bytes, and the body:
//
//	time<varint, ns> sink<string> target<string> batch<uvarint> part<uvarint> groups<uvarint> { group }
//	group:  points<uvarint> series<uvarint> { name<string> points<uvarint> } reason<string> payload<string>
//	string: length<uvarint> bytes
//
// It is written under another name, forced to the disk and renamed, so that it is there whole or not at all. The payload
// is in the encoding of the store's writer.
//
// # Access
//
// The collector adds files, and removes the oldest when there are too many bytes. Any process may read them beside it, and the
// holder of the folder's lock may remove or replace them.
package refused
