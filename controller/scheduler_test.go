package controller

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
	"sextant/config"
	"sextant/controller/schedulerpb"
)

const invalidCall = codes.InvalidArgument

// callScheduler makes a client of the scheduler by gRPC.
func callScheduler(t *testing.T, target string, c credentials.TransportCredentials) (
	schedulerpb.SchedulerClient, context.Context) {
	t.Helper()
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return schedulerpb.NewSchedulerClient(connection), ctx
}

// sameAnswer compares a message with what the API by HTTP answers.
func sameAnswer(t *testing.T, what string, message proto.Message, answer any) {
	t.Helper()
	texts := make([][]byte, 2)
	var errs [2]error
	texts[0], errs[0] = protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	texts[1], errs[1] = json.Marshal(answer)
	var values [2]map[string]any
	for i := range texts {
		if errs[i] != nil || json.Unmarshal(texts[i], &values[i]) != nil {
			t.Fatalf("%s: %v: %s", what, errs[i], texts[i])
		}
		strip(values[i])
	}
	if diff := cmp.Diff(values[1], values[0]); diff != "" {
		t.Errorf("%s (-HTTP +gRPC):\n%s", what, diff)
	}
}

// strip leaves out what passes, and what is left out where it has no value.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "seconds")
		for key, inner := range v {
			if inner == "" || inner == false {
				delete(v, key)
			}
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// What is asked by gRPC on the socket is answered as it is by HTTP: paths of both families, flows
// that are placed by one and released by the other, and errors by their kinds.
func TestSchedulerByGRPC(t *testing.T) {
	byHTTP, stop := startFabric(t, "")
	defer stop()
	byGRPC, ctx := callScheduler(t, "unix:"+byHTTP.socket, insecure.NewCredentials())
	tcp := tcp4(0, 0, 1)
	flow := &schedulerpb.Flow{Source: tcp.Source.String(), Destination: tcp.Destination.String(),
		Protocol: "tcp"}
	path := []string{"leaf0", "spine2", "leaf1"}
	steered, err := byGRPC.Ports(ctx, &schedulerpb.PathQuestion{Flow: flow, Path: path})
	if err != nil || !slices.Equal(steered.Path, path) || len(steered.Choices) != 1 {
		t.Fatalf("ports: %v, %v", steered, err)
	}
	q := &schedulerpb.PathQuestion{Flow: steered.Flow}
	recovered, err := byGRPC.Recover(ctx, q)
	if err != nil || !slices.Equal(recovered.Path, path) {
		t.Errorf("recover: %v, %v", recovered, err)
	}
	chosen := tcp
	chosen.Source = netip.MustParseAddrPort(steered.Flow.Source)
	want, err := byHTTP.Recover(ctx, PathQuestion{Flow: chosen})
	if err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, "recover", recovered, want)
	six := &schedulerpb.Flow{Source: "[2001:db8:0::1]:4000", Destination: "[2001:db8:1::1]:443",
		Protocol: "tcp"}
	best, err := byGRPC.Best(ctx, &schedulerpb.PathQuestion{Flow: six, Count: 3})
	if err != nil || len(best.Items) != 3 || best.Items[0].FlowLabel == nil {
		t.Errorf("best: %v, %v", best, err)
	}
	placed, err := byGRPC.Place(ctx, &schedulerpb.PlacementList{Items: []*schedulerpb.Placement{
		{Name: "a", Flow: flow}, {Name: "b", Flow: six, Seconds: 300}}})
	if err != nil || len(placed.Items) != 2 || placed.Items[0].Name != "a" {
		t.Fatalf("place: %v, %v", placed, err)
	}
	list, err := byGRPC.Placed(ctx, &schedulerpb.PlacedQuestion{})
	if err != nil {
		t.Fatal(err)
	}
	items, err := byHTTP.Elephants(ctx)
	if err != nil || len(items) != 2 {
		t.Fatalf("%v, %v", items, err)
	}
	sameAnswer(t, "placed", list, api.List[Elephant]{Items: items})
	if left := list.Items[1].Seconds; left < 200 || left > 300 {
		t.Errorf("%v s are left of 300", left)
	}
	_, err = byGRPC.Release(ctx, &schedulerpb.Released{Names: []string{"a", "none"}})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("release of what is not there: %v", err)
	}
	if _, err = byGRPC.Release(ctx, &schedulerpb.Released{Names: []string{"a"}}); err != nil {
		t.Error(err)
	}
	if err := byHTTP.Release(ctx, "b"); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]struct {
		q    *schedulerpb.PathQuestion
		want codes.Code
	}{
		"no flow": {&schedulerpb.PathQuestion{}, codes.NotFound},
		"no address": {&schedulerpb.PathQuestion{Flow: &schedulerpb.Flow{Source: "x"}},
			invalidCall},
		"no router": {&schedulerpb.PathQuestion{Flow: flow, Path: []string{"leaf0", "moon"}},
			codes.NotFound},
		"no objective": {&schedulerpb.PathQuestion{Flow: flow, By: "luck"}, invalidCall},
	} {
		ask := byGRPC.Ports
		if bad.q.By != "" {
			ask = func(ctx context.Context, q *schedulerpb.PathQuestion, _ ...grpc.CallOption) (
				*schedulerpb.Steered, error) {
				_, err := byGRPC.Best(ctx, q)
				return nil, err
			}
		}
		if _, err := ask(ctx, bad.q); status.Code(err) != bad.want {
			t.Errorf("%s: %v, want %v", name, err, bad.want)
		}
	}
}

// A controller without such a network says so, as a state that calls can't mend.
func TestSchedulerWithoutFabric(t *testing.T) {
	client, stop := start(t, "")
	defer stop()
	byGRPC, ctx := callScheduler(t, "unix:"+client.socket, insecure.NewCredentials())
	_, err := byGRPC.Placed(ctx, &schedulerpb.PlacedQuestion{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "cflb") {
		t.Error(err)
	}
}

// Over TLS, a token with the role read may ask for paths and place nothing, and nobody may do
// anything without one.
func TestSchedulerOverTLS(t *testing.T) {
	dir := t.TempDir()
	authority := southboundtest.NewAuthority(t, dir)
	files := authority.Leaf(t, "node", netip.IPv6Loopback())
	port := netip.MustParseAddrPort(freePort(t))
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	texts := map[api.Permission]string{}
	for _, role := range []api.Permission{api.Read, api.Operate} {
		token, text, err := access.NewToken(string(role), role, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		texts[role] = text
		if err := access.EditTokens(tokens, func(all []access.Token) ([]access.Token, error) {
			return append(all, token), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	_, stop := startFabric(t, "", func(c *Config) {
		c.API.Listen = &config.Listen{Address: port, Certificate: files.Certificate,
			Key: files.Key, Tokens: tokens}
	})
	defer stop()
	trust, err := credentials.NewClientTLSFromFile(files.CA, "")
	if err != nil {
		t.Fatal(err)
	}
	byGRPC, ctx := callScheduler(t, port.String(), trust)
	by := func(role api.Permission) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+texts[role])
	}
	flow := &schedulerpb.Flow{Source: "10.0.0.1:0", Destination: "10.0.1.1:443", Protocol: "tcp"}
	list := &schedulerpb.PlacementList{Items: []*schedulerpb.Placement{{Name: "a", Flow: flow}}}
	for _, one := range []struct {
		name string
		ctx  context.Context
		want codes.Code
	}{{"without a token", ctx, codes.Unauthenticated},
		{"with a token to read", by(api.Read), codes.PermissionDenied},
		{"with a token to operate", by(api.Operate), codes.OK}} {
		if _, err := byGRPC.Place(one.ctx, list); status.Code(err) != one.want {
			t.Errorf("place %s: %v, want %v", one.name, err, one.want)
		}
	}
	if _, err := byGRPC.Best(by(api.Read), &schedulerpb.PathQuestion{Flow: flow}); err != nil {
		t.Errorf("best with a token to read: %v", err)
	}
}

// Messages have the fields of the types of the API, by the names that they have in JSON.
func TestMessagesHaveAllFields(t *testing.T) {
	for _, pair := range []struct {
		message proto.Message
		of      reflect.Type
	}{
		{&schedulerpb.Flow{}, reflect.TypeFor[api.Flow]()},
		{&schedulerpb.PathQuestion{}, reflect.TypeFor[PathQuestion]()},
		{&schedulerpb.Steered{}, reflect.TypeFor[Steered]()},
		{&schedulerpb.Choice{}, reflect.TypeFor[Choice]()},
		{&schedulerpb.Placement{}, reflect.TypeFor[Placement]()},
		{&schedulerpb.Elephant{}, reflect.TypeFor[Elephant]()},
		{&schedulerpb.Placements{}, reflect.TypeFor[Placements]()},
		{&schedulerpb.Released{}, reflect.TypeFor[Released]()},
	} {
		var fields, names []string
		described := pair.message.ProtoReflect().Descriptor().Fields()
		for i := range described.Len() {
			fields = append(fields, described.Get(i).JSONName())
		}
		for _, f := range reflect.VisibleFields(pair.of) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
		}
		slices.Sort(fields)
		if slices.Sort(names); !slices.Equal(fields, names) {
			t.Errorf("%v: the message has %v, JSON %v", pair.of, fields, names)
		}
	}
}
