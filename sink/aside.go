package sink

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
)

// A record is set aside when its store fails for it but takes others. Later records are written, and it is tried again
// with growing waits. Records that share a key with it stay behind it. A record with several keys is halved until the
// failing keys are alone. It is refused when it fails for asideFor. While nothing passes, single keys are tried. The
// fewer points a piece has, the likelier it passes, and one that passes shows that the store is there.
//
// Without room, records wait: a store that is away again and again fails for anything. Pieces that failed for placeFor,
// or alone for proofs times with passes between, are refused for room. Where keys are places ([Placer]), each has its own
// pieces, which are written in order, the oldest refused first.
const (
	// asideFor is how long a record is tried while others pass.
	asideFor = 15 * time.Minute
	// asideWait is where the doubling of the waits between these tries ends.
	asideWait = time.Minute
	// placeFor is how long a piece fails before it makes room for others. A new leader of a place is elected sooner.
	placeFor = time.Minute
	// maxAsides bounds the pieces that are set aside, of each place but together maxPlaced, asideShare their part of the queue's bytes.
	maxAsides  = 256
	maxPlaced  = 16384
	asideShare = 4
	// proofs is how often a piece fails alone, while others pass, before it makes room.
	proofs = 6
	// mostPieces bounds the pieces that come of halving while records wait for room.
	mostPieces = 4 * maxAsides
	// maxProbes is how many other records are tried when one fails and the cause is in doubt, in one wait.
	maxProbes = 3
	// maxParts is how often pieces are parted before something passes: 16 halves end at one of 65,536 keys.
	maxParts = 16
)

// Aside counts what is set aside.
type Aside struct {
	Pieces int // records, and parts of records, now
	Points uint64
	Total  uint64    // pieces since the start
	Since  time.Time // when the oldest was set aside; zero without one
	Error  string    // the last of one of them
}

// piece is a record, or the part of one that is still to be written.
type piece struct {
	s       *staged
	record  []byte // which holds the payload; nil for a part
	payload []byte
	points  uint64
	series  []SeriesCount

	nothing bool // the writer has nothing to do with it
	apart   bool // the writer has taken out of it what passes
	free    bool // no other suspect has to be written before it

	// Of one that is set aside.
	aside   bool
	over    bool // it is not any more
	bytes   int
	keys    []uint64 // sorted
	after   []*piece // what it stays behind
	backoff retry.Backoff
	due     time.Time
	half    int // counts those that come of halving and were not tried since; 0 for others
	since   time.Time
	began   time.Time     // when its place began to fail; zero before it was tried
	last    time.Time     // when it was tried last
	passes  uint64        // of the queue then
	lasted  time.Duration // how long it has failed while others passed
	fails   int           // how often it failed alone, with others that passed since it failed before
	err     error
}

// suspects are records that fail, in their order, where nothing passes.
type suspects struct {
	list   []*piece
	doubt  bool // another record may pass
	probes int  // since the last wait
	turn   int  // counts probes
	next   int  // of the list
}

func (q *Queue) pieceOf(s *staged, payload []byte, points uint64, series []SeriesCount) *piece {
	s.pending++
	return &piece{s: s, payload: payload, points: points, series: series}
}

var keySeed = maphash.MakeSeed()

// holds reports whether one of the pieces has a key.
func holds(pieces []*piece, key string) bool {
	sum := maphash.String(keySeed, key)
	return slices.ContainsFunc(pieces, func(p *piece) bool {
		_, ok := slices.BinarySearch(p.keys, sum)
		return ok
	})
}

// learnKeys notes the keys of a piece.
func (q *Queue) learnKeys(p *piece) {
	if p.keys != nil || q.parter == nil {
		return
	}
	_, _, _ = q.parter.Part(p.payload, func(key string) bool {
		p.keys = append(p.keys, maphash.String(keySeed, key))
		return false
	})
	slices.Sort(p.keys)
	p.keys = slices.Compact(p.keys)
}

// doubtful reports whether an error may be due to the points that were written.
func doubtful(err error) bool {
	re, ok := errors.AsType[*RetryError](err)
	return ok && re.Doubt && re.After == 0
}

// split leaves a piece its first n keys and returns a new piece with the others. It returns nil if either would have
// no key. It also does so after maxParts splits without a pass, and if the writer separates items by itself.
func (q *Queue) split(p *piece, n int) *piece {
	if q.passes != q.partedAt {
		q.partedAt, q.parts = q.passes, 0
	}
	if n <= 0 || n >= len(p.keys) || p.apart || q.parts >= maxParts {
		return nil
	}
	other := q.cut(p, n)
	if other != nil {
		q.parts++
	}
	return other
}

// separate returns a piece for each place of p, or p itself where keys are no places.
func (q *Queue) separate(p *piece) []*piece {
	list := []*piece{p}
	if q.places == 0 {
		return list
	}
	q.learnKeys(p)
	for len(p.keys) > 1 {
		other := q.cut(p, len(p.keys)-1)
		if other == nil {
			break
		}
		list = append(list, other)
	}
	return list
}

// cut leaves a piece its first n keys and returns a new piece with the others, or nil if either would have no points.
func (q *Queue) cut(p *piece, n int) *piece {
	others := []*piece{{keys: p.keys[n:]}}
	held, rest, err := q.parter.Part(p.payload, func(key string) bool { return holds(others, key) })
	if err != nil || held.Points == 0 || rest.Points == 0 {
		return nil
	}
	other := q.pieceOf(p.s, held.Payload, held.Points, held.Series)
	other.keys, other.free, other.apart, other.err, other.passes = p.keys[n:], true, p.apart, p.err, p.passes
	p.payload, p.points, p.series, p.keys = rest.Payload, rest.Points, rest.Series, p.keys[:n:n]
	return other
}

// behind passes the part of a piece that has to stay behind others to late, and returns the rest; nil if nothing is
// left.
func (q *Queue) behind(p *piece, others []*piece, late func(*piece)) *piece {
	if q.parter == nil || len(others) == 0 {
		return p
	}
	held, rest, err := q.parter.Part(p.payload, func(key string) bool { return holds(others, key) })
	switch {
	case err != nil || held.Points == 0:
		return p
	case rest.Points == 0:
		late(p)
		return nil
	}
	late(q.pieceOf(p.s, held.Payload, held.Points, held.Series))
	p.payload, p.points, p.series, p.keys = rest.Payload, rest.Points, rest.Series, nil
	return p
}

// probe tries records behind one that fails, and reports whether one of them passed.
func (q *Queue) probe(ctx context.Context, s *suspects) bool {
	for ; s.doubt && s.probes < maxProbes; s.probes++ {
		for _, p := range s.list {
			q.learnKeys(p)
		}
		p, repeated := q.candidate(s)
		if p == nil {
			if repeated {
				continue
			}
			return false
		}
		err := q.try(ctx, p)
		switch {
		case err == nil || Permanent(err):
			s.list = slices.DeleteFunc(s.list, func(other *piece) bool { return other == p })
			q.written(p, err)
			if p.nothing {
				continue
			}
			return true
		case othersPassed(err):
			q.setFailing(false)
			return true
		case ctx.Err() != nil:
			return false
		}
		q.failed(err)
		p.err, p.passes = err, q.passes
		s.doubt = doubtful(err)
	}
	return false
}

// candidate returns a record for the next probe; it is one of the suspects from then on. If none can be probed now,
// because what came has to stay behind others, it returns true. Keys of a suspect take turns with new records, since
// one line may be in all of these.
func (q *Queue) candidate(s *suspects) (p *piece, repeated bool) {
	if s.turn++; s.turn%2 == 0 {
		if p := q.keyOf(s); p != nil {
			return p, false
		}
	}
	bytes := 0
	for _, p := range s.list {
		bytes += len(p.payload)
	}
	if len(s.list) >= maxAsides/4 || bytes > q.conf.MaxBytes/asideShare/4 {
		s.next++
		if p := s.list[s.next%len(s.list)]; p.free {
			return p, false
		}
		return nil, true
	}
	p, ok := q.popFront()
	if !ok {
		it, ok := q.nextRecord(nil)
		if !ok {
			return q.keyOf(s), false
		}
		p = q.admit(&it)
	}
	if p == nil {
		return nil, true
	}
	late := func(late *piece) { s.list = append(s.list, late) }
	if p = q.behind(p, s.list, late); p == nil {
		return nil, true
	}
	p.free = true
	s.list = append(s.list, p)
	return p, false
}

// keyOf splits one key off the suspect with the fewest keys that has several. Places were tried alone.
func (q *Queue) keyOf(s *suspects) *piece {
	if q.places > 0 {
		return nil
	}
	least := -1
	for i, p := range s.list {
		q.learnKeys(p)
		if (i == 0 || p.free) && len(p.keys) > 1 && (least < 0 || len(p.keys) < len(s.list[least].keys)) {
			least = i
		}
	}
	if least < 0 {
		return nil
	}
	key := q.split(s.list[least], len(s.list[least].keys)-1)
	if key != nil {
		s.list = slices.Insert(s.list, least+1, key)
	}
	return key
}

// setAside puts a piece aside that failed with an error.
func (q *Queue) setAside(p *piece, err error) {
	for _, p := range q.separate(p) {
		q.putAside(p, err)
		if p.aside && !q.part(p, err) {
			p.due = p.since.Add(p.backoff.Next())
		}
	}
}

// part halves a piece that is set aside and failed, and reports whether it did. Both halves are due.
func (q *Queue) part(p *piece, err error) bool {
	if q.parter == nil || !doubtful(err) {
		return false
	}
	q.learnKeys(p)
	half := q.split(p, len(p.keys)/2)
	if half == nil {
		return false
	}
	half.aside, half.after = true, slices.Clone(p.after)
	half.backoff, half.since, half.last, half.lasted = p.backoff, p.since, p.last, p.lasted
	for _, other := range q.asides {
		if slices.Contains(other.after, p) {
			other.after = append(other.after, half)
		}
	}
	for _, x := range []*piece{p, half} {
		q.fresh++
		x.half, x.due = q.fresh, p.last
	}
	q.asideBytes -= p.bytes
	p.bytes, half.bytes = len(p.payload), len(half.payload)
	q.asideBytes += p.bytes + half.bytes
	q.asides = slices.Insert(q.asides, slices.Index(q.asides, p)+1, half)
	q.noteAside(1, err)
	q.makeRoom()
	return true
}

// putAside puts a piece aside. It is due as soon as the pieces that it stays behind are done. Without an error it was
// not tried.
func (q *Queue) putAside(p *piece, err error) {
	if p.record != nil {
		p.record, p.payload = nil, slices.Clone(p.payload)
	}
	q.learnKeys(p)
	now := time.Now()
	p.aside, p.bytes, p.err, p.since, p.last, p.due, p.passes = true, len(p.payload), err, now, now, now, q.passes
	if err != nil {
		p.began = now
	}
	p.backoff = retry.Backoff{Min: q.conf.RetryMin, Max: max(asideWait, q.conf.RetryMin), Spread: 0.5, Rand: q.opt.Rand}
	for _, other := range slices.Backward(q.asides) {
		if slices.ContainsFunc(p.keys, func(k uint64) bool { _, ok := slices.BinarySearch(other.keys, k); return ok }) {
			p.after = append(p.after, other)
			if q.places > 0 {
				break // which is behind the others of its place
			}
		}
	}
	q.asides = append(q.asides, p)
	q.asideBytes += p.bytes
	q.noteAside(1, err)
	q.makeRoom()
}

// asideFull reports whether more is set aside than there is room for.
func (q *Queue) asideFull() bool {
	return len(q.asides) > max(maxAsides, min(maxAsides*q.places, maxPlaced)) || len(q.asides) > 1 && q.asideBytes > q.conf.MaxBytes/asideShare
}

// makeRoom refuses pieces until there is room, as long as one may be the cause: it has failed for placeFor, and since
// another place was there, or without places, alone proofs times. Beyond mostPieces it refuses the first of any.
func (q *Queue) makeRoom() {
	for q.asideFull() {
		if q.placesFail() {
			q.allAway = q.passes + 1
		}
		at := slices.IndexFunc(q.asides, func(p *piece) bool {
			return q.places == 0 && p.fails >= proofs || !p.began.IsZero() && time.Since(p.began) >= placeFor && p.passes >= q.allAway && !p.behind()
		})
		if at < 0 && (q.places > 0 || len(q.asides) <= mostPieces) {
			return
		}
		q.abandon(q.asides[max(at, 0)], "more is set aside than there is room for")
	}
}

// placesFail reports whether each place has a piece that fails.
func (q *Queue) placesFail() bool {
	n := 0
	for _, p := range q.asides {
		if !p.began.IsZero() && !p.behind() {
			n++
		}
	}
	return q.places > 0 && n >= q.places
}

// behind reports whether a piece stays behind another one.
func (p *piece) behind() bool {
	return slices.ContainsFunc(p.after, func(other *piece) bool { return !other.over })
}

// next returns the piece that follows one of a place; nil for none.
func (q *Queue) nextOf(p *piece) *piece {
	at := slices.IndexFunc(q.asides, func(other *piece) bool { return slices.Contains(other.after, p) })
	if q.places == 0 || at < 0 {
		return nil
	}
	return q.asides[at]
}

// noteAside counts the pieces that are set aside.
func (q *Queue) noteAside(more uint64, err error) {
	a := Aside{Pieces: len(q.asides)}
	for i, p := range q.asides {
		if a.Points += p.points; i == 0 {
			a.Since = p.since
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a.Total, a.Error = q.stats.Aside.Total+more, q.stats.Aside.Error
	if err != nil {
		a.Error = err.Error()
	}
	q.stats.Aside = a
}

// dueAside returns a piece that was set aside and may be tried now, or else how long that takes; 0 for never. Halves
// come first, the last made before others, so that few pieces wait for their first try.
func (q *Queue) dueAside(now time.Time) (due *piece, wait time.Duration) {
	for _, p := range q.asides {
		if p.behind() {
			continue
		}
		switch left := p.due.Sub(now); {
		case left <= 0 && (due == nil || p.half > due.half || p.half == due.half && p.due.Before(due.due)):
			due = p
		case left > 0 && (wait == 0 || left < wait):
			wait = left
		}
	}
	return due, wait
}

// spend counts the time of a write, so that pieces that were set aside take at most half of the time of the others.
func (q *Queue) spend(p *piece, d time.Duration) {
	if p.aside {
		d = -2 * d
	}
	q.credit = min(q.credit+d, asideWait)
}

// noteFailure notes that a piece failed that was set aside.
func (q *Queue) noteFailure(p *piece, err error) {
	now := time.Now()
	if q.passes != p.passes {
		p.lasted += now.Sub(p.last)
		if len(p.keys) == 1 {
			p.fails++
		}
	}
	p.last, p.passes, p.err, p.half = now, q.passes, err, 0
	if p.began.IsZero() {
		p.began = now
	}
	if !p.expired(now) && q.part(p, err) {
		return
	}
	wait := p.backoff.Next()
	if re, ok := errors.AsType[*RetryError](err); ok {
		wait = max(wait, re.After)
	}
	p.due = now.Add(wait)
	if p.expired(now) {
		for p != nil && p.expired(now) {
			next := q.nextOf(p)
			q.abandon(p, fmt.Sprintf("it was tried for %v while others passed", asideFor))
			p = next
		}
		return
	}
	q.mu.Lock()
	q.stats.Retries++
	q.mu.Unlock()
	q.noteAside(0, err)
	q.makeRoom()
}

// expired reports whether a piece was set aside for as long as it may be.
func (p *piece) expired(now time.Time) bool {
	return p.lasted >= asideFor && now.Sub(p.since) >= asideFor
}

// abandon refuses a piece in place of its store.
func (q *Queue) abandon(p *piece, why string) {
	err := errors.New(why)
	if p.err != nil {
		err = fmt.Errorf("%s: %w", why, p.err)
	}
	if next := q.nextOf(p); next != nil { // its place is still away
		next.err, next.passes, next.last, next.lasted = p.err, p.passes, p.last, max(next.lasted, p.lasted)
		next.began, next.backoff, next.due = p.began, p.backoff, p.due
	}
	q.refuse(p, &PermanentError{Err: err})
	q.endPiece(p)
	q.settle()
}

// unset takes a piece out of those that are set aside.
func (q *Queue) unset(p *piece) {
	if !p.aside {
		return
	}
	p.aside, p.over, p.after, p.payload = false, true, nil, nil // those behind it hold it
	q.asides = slices.DeleteFunc(q.asides, func(other *piece) bool { return other == p })
	q.asideBytes -= p.bytes
	q.noteAside(0, nil)
}

// endAsides settles the pieces that are set aside at the end of the queue. Without a spool each piece is tried once
// more. Pieces for places stay in a spool.
func (q *Queue) endAsides(ctx context.Context) {
	if q.places > 0 && q.opt.Spool != nil {
		q.asides = slices.DeleteFunc(q.asides, func(p *piece) bool { return p.s.onDisk })
	}
	for len(q.asides) > 0 {
		p := q.asides[0]
		if q.opt.Spool == nil && ctx.Err() == nil {
			if err := q.try(ctx, p); err == nil || Permanent(err) {
				q.written(p, err)
				continue
			}
		}
		q.abandon(p, "it was set aside when the program ended")
	}
}
