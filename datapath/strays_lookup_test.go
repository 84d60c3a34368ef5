package datapath

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"sextant/linux"
)

const (
	stateInSock = 72 // offset of state in struct bpf_sock
	listening   = 10 // TCP_LISTEN
)

// lookupProgram asks for the socket of an IPv4 tuple, and returns 1 if there is one that is no
// listener.
func lookupProgram(t testing.TB, kind ebpf.ProgramType, client,
	server netip.AddrPort) *ebpf.Program {
	t.Helper()
	var tuple [16]byte // source, destination, source port, destination port
	source, destination := client.Addr().As4(), server.Addr().As4()
	copy(tuple[0:], source[:])
	copy(tuple[4:], destination[:])
	binary.BigEndian.PutUint16(tuple[8:], client.Port())
	binary.BigEndian.PutUint16(tuple[10:], server.Port())
	instructions := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	for i := 0; i < 12; i += 4 {
		instructions = append(instructions, asm.StoreImm(asm.RFP, int16(i-16),
			int64(int32(binary.NativeEndian.Uint32(tuple[i:]))), asm.Word))
	}
	const currentNamespace = -1 // BPF_F_CURRENT_NETNS
	instructions = append(instructions,
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.Mov.Imm(asm.R3, 12),
		asm.Mov.Imm(asm.R4, currentNamespace), asm.Mov.Imm(asm.R5, 0), asm.FnSkcLookupTcp.Call(),
		asm.Mov.Reg(asm.R6, asm.R0), asm.Mov.Imm(asm.R0, 0), asm.JEq.Imm(asm.R6, 0, "end"),
		asm.LoadMem(asm.R7, asm.R6, stateInSock, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6), asm.FnSkRelease.Call(), asm.Mov.Imm(asm.R0, 1),
		asm.JNE.Imm(asm.R7, listening, "end"),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return().WithSymbol("end"),
	)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, Instructions: instructions,
		License: "GPL"})
	must(t, err)
	t.Cleanup(func() { program.Close() })
	return program
}

// finds runs a program as if a packet had come by an interface.
func finds(t testing.TB, program *ebpf.Program, index int) bool {
	t.Helper()
	frame := bytes.Repeat([]byte{0}, 64)
	verdict, err := program.Run(&ebpf.RunOptions{Data: frame,
		Context: runContext(program.Type(), len(frame), index)})
	must(t, err)
	return verdict == 1
}

// runContext says that a frame of so many bytes came by an interface.
func runContext(kind ebpf.ProgramType, length, index int) any {
	if kind == ebpf.XDP {
		return xdpContext{DataEnd: uint32(length), Ingress: uint32(index)}
	}
	context := make([]byte, 192) // struct __sk_buff
	binary.NativeEndian.PutUint32(context[40:], uint32(index))
	return context
}

// TestStraySockets: from which device a look-up finds the connection of a server that is bound to a
// VRF.
func TestStraySockets(t *testing.T) {
	for _, accept := range []string{"0", "1"} {
		t.Run("tcp_l3mdev_accept "+accept, func(t *testing.T) {
			r := newStrayRouter(t)
			vrf := ofDevice(t, r)
			must(t, linux.WriteSysctl("net.ipv4.tcp_l3mdev_accept", accept))
			device, address := vrf.Device, strayVIP4+":80"
			if accept == "1" {
				// the listener is of all VRFs, but what it accepts is of one
				device, address = "", "0.0.0.0:80"
			}
			r.serve(t, address, device)
			var client net.Conn
			must(t, r.client.Do(func() (err error) {
				client, err = net.Dial("tcp", strayVIP4+":80")
				return err
			}))
			defer client.Close()
			must(t, pingPong(client))
			from, to := client.LocalAddr().(*net.TCPAddr).AddrPort(),
				client.RemoteAddr().(*net.TCPAddr).AddrPort()
			blue, err := net.InterfaceByName("blue")
			must(t, err)
			tc := lookupProgram(t, ebpf.SchedCLS, from, to)
			if finds(t, lookupProgram(t, ebpf.XDP, from, to), r.world.near) ||
				finds(t, tc, r.world.near) {
				t.Error("the socket is found from the physical interface; then packets need not " +
					"go to the VRF to be asked for")
			}
			if !finds(t, tc, blue.Index) {
				t.Error("the socket is not found from the VRF device")
			}
		})
	}
}

// pingPong sends a byte and waits for it.
func pingPong(c net.Conn) error {
	one := []byte{1}
	if _, err := c.Write(one); err != nil {
		return err
	}
	_, err := c.Read(one)
	return err
}
