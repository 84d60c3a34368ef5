package southbound_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var update = flag.Bool("update", false, "write the generated files")

// TestGenerated compares the committed Go with what the plugins make of the protocols of the tree;
// with -update it writes it.
func TestGenerated(t *testing.T) {
	for folder, name := range map[string]string{"southboundpb": "southbound.proto",
		"../../controller/schedulerpb": "scheduler.proto"} {
		t.Run(name, func(t *testing.T) { generated(t, folder, name) })
	}
}

func generated(t *testing.T, folder, name string) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{folder}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name}, Parameter: proto.String("paths=source_relative"),
		ProtoFile: []*descriptorpb.FileDescriptorProto{
			protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		cmd := exec.CommandContext(t.Context(), "go", "tool", plugin)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", plugin, err)
		}
		var response pluginpb.CodeGeneratorResponse
		if err := proto.Unmarshal(out, &response); err != nil || response.Error != nil {
			t.Fatalf("%s: %v, %s", plugin, err, response.GetError())
		}
		for _, f := range response.File {
			compareGenerated(t, filepath.Join(folder, f.GetName()), f.GetContent())
		}
	}
}

func compareGenerated(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the plugins make of its .proto (%v); run "+
			"go test ./agent/southbound -run TestGenerated -args -update", path, err)
	}
}
