// Package quantile estimates quantiles of streams in little memory.
//
// Values become codes when they come in and values again when they go out ([Encode], [Decode]). A code is log-linear, like
// a floating-point number without a sign. Values below a threshold are exact. Above it, every octave [2ⁱ, 2ⁱ⁺¹) is cut into
// equal cells, as many as a fixed number of mantissa bits can distinguish. Decoding gives the middle of a cell. There are
// two resolutions, and both cover all of uint64:
//
//	            mantissa bits   codes   exact below   relative error
//	Encode      10              56320   2048          ≤ 1/2048 (0.049 %)
//	EncodeDense 5                1920     64          ≤ 1/64   (1.56 %)
//
// Codes keep the order of values: a ≤ b implies Encode(a) ≤ Encode(b). So ranks and quantiles of codes are those of the
// values, up to the relative error. Encoding uses only shifts and a count of leading zeros and no floating point. So codes
// are the same on every machine and can be stored. Values are divided as in HdrHistogram (Gil Tene), over the whole range
// of uint64.
//
// A [Histogram] counts every dense code, in 7.8 KB at most. The sketches of 16-bit codes take 120 bytes, so that millions of
// them fit into the entries of a flow table. [Tail] bounds the error of values, in the tail best: how slow are the slowest
// of a hundred. [BriefTail] is a Tail of few codes in 52 bytes. [Tiny] bounds the error of ranks, everywhere alike.
//
// Merging sketches in another order gives one that keeps the same bounds, but not the same bytes. No sketch reads a clock or
// a global generator: its input and the [Rand] of the caller decide every bit. Histograms alone have a form on disk.
package quantile
