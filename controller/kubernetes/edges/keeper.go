package edges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sextant/agent/api"
)

// An Agent is the API of an edge's agent, as far as it is needed here.
type Agent interface {
	// Declared is all that the agent has.
	Declared(context.Context) (api.DeclaredList, error)
	// Declare changes it.
	Declare(context.Context, api.Declaration) (api.DeclarationMade, error)
}

// A Report says how far an edge is.
type Report struct {
	Services int    // that it has of this cluster
	Waiting  int    // that it is not told of yet, or refuses
	Trouble  string // why, if something is wrong
}

const (
	batch     = 512  // services in one change
	backends  = 5120 // of them, unless one service has more
	patience  = 60 * time.Second
	leastWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
	// look is how often the agent is asked what it has: an operator may have changed it by hand.
	look = time.Minute
	// retries is how many services that were refused before may be refused again until the agent is
	// asked the next time: as an agent is full, thousands may be.
	retries = 8
)

// A Keeper keeps one agent equal to the board.
type Keeper struct {
	board  *Board
	agent  Agent
	zone   string
	report func(Report)
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{} // of capacity 1

	mu      sync.Mutex
	dirty   map[string]bool
	has     map[string]uint64 // what the agent has, by the sum of what it was told
	sizes   map[string]int    // maxBackends of tables that it has
	refused map[string]refusal
	trouble string // why it does not answer
	known   bool   // the agent has said what it has
	due     bool   // it is to be asked again
	print   string // fingerprint of its configuration
	tries   int    // that are left of retries
}

// A refusal is what an agent says against a service.
type refusal struct {
	why string
	sum uint64 // of what it was told
}

func newKeeper(b *Board, agent Agent, zone string, report func(Report)) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{board: b, agent: agent, zone: zone, report: report, cancel: cancel,
		done: make(chan struct{}), wake: make(chan struct{}, 1), dirty: map[string]bool{},
		has: map[string]uint64{}, sizes: map[string]int{}, refused: map[string]refusal{}}
	go k.run(ctx)
	return k
}

func (k *Keeper) stop() {
	k.cancel()
	<-k.done
}

// mark says that services have changed.
func (k *Keeper) mark(names []string) {
	k.add(names)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// add has services be told to the agent the next time.
func (k *Keeper) add(names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		k.dirty[name] = true
	}
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	wait := leastWait
	for {
		var again <-chan time.Time
		if k.board.isWhole() {
			if err := k.converge(ctx); ctx.Err() != nil {
				return
			} else if k.told(err); err != nil {
				again = time.After(wait)
				wait = min(2*wait, mostWait)
			} else {
				wait = leastWait
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-again:
		case <-ticker.C:
			k.askAgain()
		}
	}
}

// told reports how far the edge is.
func (k *Keeper) told(err error) {
	k.mu.Lock()
	before := k.trouble
	k.trouble = ""
	if err != nil {
		k.trouble = err.Error()
	}
	r := Report{Services: len(k.has), Waiting: len(k.dirty) + len(k.refused), Trouble: k.trouble}
	if err == nil && len(k.refused) > 0 { // always the same one of several, or each would be news
		name := slices.Min(slices.Collect(maps.Keys(k.refused)))
		r.Trouble = fmt.Sprintf("%s: %s", name, k.refused[name].why)
	}
	changed := (before == "") != (k.trouble == "")
	k.mu.Unlock()
	k.report(r)
	if changed {
		for _, name := range k.board.names() {
			if _, owner, ok := k.board.result(name); ok {
				k.board.told(owner)
			}
		}
	}
}

// converge tells the agent all that it does not have.
func (k *Keeper) converge(ctx context.Context) error {
	for {
		k.mu.Lock()
		ask := k.due || !k.known
		k.mu.Unlock()
		if ask {
			if err := k.learn(ctx); err != nil {
				return err
			}
		}
		names := k.take()
		if len(names) == 0 {
			return nil
		}
		err := k.tell(ctx, names)
		if err == nil {
			continue
		}
		k.add(names) // without waking itself, so that the caller's wait holds
		k.askAgain()
		var refused *api.Error
		if !errors.As(err, &refused) || refused.Code != api.Stale {
			return err
		}
		// Another client has changed it.
	}
}

// askAgain has the agent be asked what it has; until it answers, what is known of it holds.
func (k *Keeper) askAgain() {
	k.mu.Lock()
	k.due = true
	k.mu.Unlock()
}

func (k *Keeper) take() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.dirty {
		if len(names) == batch {
			break
		}
		names = append(names, name)
		delete(k.dirty, name)
	}
	return names
}

// learn asks the agent what it has.
func (k *Keeper) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := k.agent.Declared(ctx)
	if err != nil {
		return err
	}
	has, sizes, dirty := map[string]uint64{}, map[string]int{}, map[string]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		if !strings.HasPrefix(d.Name, k.board.prefix) {
			continue
		}
		if d.MaxBackends != nil {
			sizes[d.Name] = *d.MaxBackends
		}
		r, _, planned := k.board.result(d.Name)
		want := r.For(k.zone)
		if want = grown(want, sizes[d.Name]); !planned || !covers(d, &want) {
			dirty[d.Name], has[d.Name] = true, 0
			continue
		}
		has[d.Name] = sumOf(&want)
	}
	for _, name := range k.board.names() {
		if _, ok := has[name]; !ok {
			dirty[name] = true
		}
	}
	var news []string // the agent had them before this program was there
	k.mu.Lock()
	for name := range has {
		if _, had := k.has[name]; !had {
			news = append(news, name)
		}
	}
	k.has, k.sizes, k.known, k.due, k.print = has, sizes, true, false, list.Fingerprint
	k.tries = retries
	maps.DeleteFunc(k.refused, func(name string, _ refusal) bool { return !dirty[name] })
	for name := range dirty {
		k.dirty[name] = true
	}
	k.mu.Unlock()
	for _, name := range news {
		if _, owner, ok := k.board.result(name); ok {
			k.board.told(owner)
		}
	}
	return nil
}

// tell makes one change of services. Those that were refused as they are come behind.
func (k *Keeper) tell(ctx context.Context, names []string) error {
	d := api.Declaration{Fingerprint: k.print}
	var again []api.Declared
	var fresh []string
	many := 0
	sums, sizes := map[string]uint64{}, map[string]int{}
	for _, name := range names {
		r, _, ok := k.board.result(name)
		k.mu.Lock()
		had, there := k.has[name]
		size, refused := k.sizes[name], k.refused[name]
		k.mu.Unlock()
		if !ok {
			fresh = append(fresh, name)
			if there {
				d.Remove = append(d.Remove, name)
			}
			continue
		}
		want := grown(r.For(k.zone), size)
		sum := sumOf(&want)
		if sum == refused.sum {
			again = append(again, want)
			continue
		}
		if !there || sum != had {
			if many+len(want.Backends) > backends && len(d.Set) > 0 {
				k.add([]string{name}) // for the next change
				continue
			}
			many += len(want.Backends)
			d.Set = append(d.Set, want)
		}
		fresh = append(fresh, name)
		if want.MaxBackends != nil {
			sizes[name] = *want.MaxBackends
		}
		sums[name] = sum
	}
	if len(d.Set)+len(d.Remove) > 0 {
		if err := k.send(ctx, d); err != nil {
			if err := k.apart(ctx, d, err); err != nil {
				return err
			}
			return k.retry(ctx, again)
		}
	}
	k.settled(fresh, sums, sizes)
	return k.retry(ctx, again)
}

// retry tells services anew that were refused as they are, until several have been refused again:
// then the others most likely are, and wait until the agent is asked what it has.
func (k *Keeper) retry(ctx context.Context, list []api.Declared) error {
	for i := range list {
		if k.tries == 0 {
			return nil
		}
		d := api.Declaration{Fingerprint: k.print, Set: list[i : i+1]}
		err := k.send(ctx, d)
		if err == nil {
			k.settledAs(d.Set)
			continue
		}
		k.tries--
		if err := k.apart(ctx, d, err); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) send(ctx context.Context, d api.Declaration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	made, err := k.agent.Declare(ctx, d)
	if err == nil {
		k.print = made.Fingerprint
	}
	return err
}

// apart tells services that were refused together one by one, so that a wrong one holds up no
// other. All that do not answer, or are told of another configuration, are an error.
func (k *Keeper) apart(ctx context.Context, d api.Declaration, err error) error {
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != api.Invalid && refused.Code != api.Conflict {
		return err
	}
	if len(d.Set) <= 1 && len(d.Remove) == 0 {
		k.refuse(&d.Set[0], refused.Message)
		return nil
	}
	if len(d.Remove) > 0 {
		if err := k.send(ctx, api.Declaration{Fingerprint: k.print, Remove: d.Remove}); err != nil {
			return err
		}
		k.settled(d.Remove, nil, nil)
	}
	for half, rest := d.Set[:len(d.Set)/2], d.Set[len(d.Set)/2:]; ; half, rest = rest, nil {
		if len(half) > 0 {
			one := api.Declaration{Fingerprint: k.print, Set: half}
			if err := k.send(ctx, one); err != nil {
				if err := k.apart(ctx, one, err); err != nil {
					return err
				}
			} else {
				k.settledAs(half)
			}
		}
		if rest == nil {
			return nil
		}
	}
}

func (k *Keeper) settledAs(list []api.Declared) {
	names, sums, sizes := []string{}, map[string]uint64{}, map[string]int{}
	for i := range list {
		names = append(names, list[i].Name)
		sums[list[i].Name] = sumOf(&list[i])
		if list[i].MaxBackends != nil {
			sizes[list[i].Name] = *list[i].MaxBackends
		}
	}
	k.settled(names, sums, sizes)
}

func (k *Keeper) refuse(d *api.Declared, why string) {
	k.mu.Lock()
	before := k.refused[d.Name].why
	k.refused[d.Name] = refusal{why, sumOf(d)}
	k.mu.Unlock()
	if _, owner, ok := k.board.result(d.Name); ok && why != before {
		k.board.told(owner)
	}
}

// settled notes what the agent has now, and tells owners for whom that is news.
func (k *Keeper) settled(names []string, sums map[string]uint64, sizes map[string]int) {
	owners := map[string]bool{}
	for _, name := range names {
		_, owner, ok := k.board.result(name)
		k.mu.Lock()
		_, had := k.has[name]
		_, was := k.refused[name]
		delete(k.refused, name)
		if sum, set := sums[name]; set {
			k.has[name] = sum
			k.sizes[name] = max(k.sizes[name], sizes[name])
		} else {
			delete(k.has, name)
			delete(k.sizes, name)
		}
		k.mu.Unlock()
		if ok && (!had || was) {
			owners[owner] = true
		}
	}
	for owner := range owners {
		k.board.told(owner)
	}
}

func (k *Keeper) state(names []string) State {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := State{Serves: len(names) > 0, Current: k.trouble == "" && k.known, Trouble: k.trouble}
	for _, name := range names {
		if _, ok := k.has[name]; !ok {
			s.Serves = false
		}
		why := k.refused[name].why
		if k.dirty[name] || why != "" {
			s.Current = false
		}
		if why != "" && s.Trouble == "" {
			s.Trouble = why
		}
	}
	return s
}

var seed = maphash.MakeSeed()

// sumOf tells declarations apart.
func sumOf(d *api.Declared) uint64 {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // of strings and numbers alone
	}
	return maphash.Bytes(seed, text) | 1
}
