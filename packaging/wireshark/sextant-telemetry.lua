-- In-band telemetry for Wireshark: Telemetry Report 2.0 and INT 2.1 of P4.org, behind UDP, with the
-- domain-specific metadata of Sextant, and the hop-by-hop option of SRv6 Path Tracing. Wireshark
-- itself knows IOAM traces (RFC 9197).
--
-- The UDP ports are preferences of the protocols "telemetry_report" and "int".

local DOMAIN = 0x534d -- Domain Specific ID of Sextant
local WORD = 4

-- each instruction bit: mask, octets
local INSTRUCTIONS = {
	{0x8000, 4}, {0x4000, 4}, {0x2000, 4}, {0x1000, 4}, {0x0800, 8}, {0x0400, 8}, {0x0200, 8},
	{0x0100, 4}, {0x0080, 4}, {0x0040, 4}, {0x0020, 4}, {0x0010, 4}, {0x0008, 4}, {0x0004, 4},
	{0x0002, 4}, {0x0001, 4},
}

-- the fields of node metadata, made for one protocol
local function metadata_fields(prefix)
	return {
		node = ProtoField.uint32(prefix .. ".node", "Node ID"),
		ingress = ProtoField.uint16(prefix .. ".ingress", "Ingress interface"),
		egress = ProtoField.uint16(prefix .. ".egress", "Egress interface"),
		latency = ProtoField.uint32(prefix .. ".latency", "Hop latency (ns)"),
		queue = ProtoField.uint8(prefix .. ".queue", "Queue"),
		occupancy = ProtoField.uint24(prefix .. ".queue_bytes", "Queue occupancy (octets)"),
		ingress_time = ProtoField.uint64(prefix .. ".ingress_time", "Ingress time (ns)"),
		egress_time = ProtoField.uint64(prefix .. ".egress_time", "Egress time (ns)"),
		wide_ingress = ProtoField.uint32(prefix .. ".wide_ingress", "Level 2 ingress interface"),
		wide_egress = ProtoField.uint32(prefix .. ".wide_egress", "Level 2 egress interface"),
		utilization = ProtoField.uint32(prefix .. ".utilization", "Egress utilization (ppm)"),
		buffer = ProtoField.uint8(prefix .. ".buffer", "Buffer"),
		buffer_occupancy = ProtoField.uint24(prefix .. ".buffer_bytes", "Buffer occupancy (octets)"),
		reserved = ProtoField.uint32(prefix .. ".reserved", "Reserved metadata", base.HEX),
		checksum = ProtoField.uint32(prefix .. ".checksum_complement", "Checksum complement", base.HEX),
		drop_queue = ProtoField.uint8(prefix .. ".drop_queue", "Queue of the drop"),
		drop_reason = ProtoField.uint8(prefix .. ".drop_reason", "Drop reason"),
		domain_specific = ProtoField.bytes(prefix .. ".ds", "Domain-specific metadata"),
	}
end

local int = Proto("int", "In-band Network Telemetry 2.1")
local I = {
	type = ProtoField.uint8("int.type", "Type", base.DEC, {[1] = "MD", [2] = "Destination", [3] = "MX"}, 0xf0),
	npt = ProtoField.uint8("int.npt", "Next protocol type", base.DEC,
		{[0] = "DSCP", [1] = "original UDP port", [2] = "original IP protocol"}, 0x0c),
	words = ProtoField.uint8("int.words", "Length (words)"),
	value = ProtoField.uint16("int.value", "UDP port, IP protocol or DSCP"),
	port = ProtoField.uint16("int.original_port", "Original UDP port"),
	protocol = ProtoField.uint8("int.original_protocol", "Original IP protocol"),
	version = ProtoField.uint8("int.version", "Version", base.DEC, nil, 0xf0),
	discard = ProtoField.bool("int.discard", "Discard", 8, nil, 0x08),
	hops_exceeded = ProtoField.bool("int.hops_exceeded", "Hop count exceeded", 8, nil, 0x04),
	mtu_exceeded = ProtoField.bool("int.mtu_exceeded", "MTU exceeded", 8, nil, 0x02),
	hop_words = ProtoField.uint8("int.hop_words", "Words per hop", base.DEC, nil, 0x1f),
	remaining = ProtoField.uint8("int.remaining", "Remaining hop count"),
	instructions = ProtoField.uint16("int.instructions", "Instructions", base.HEX),
	domain = ProtoField.uint16("int.domain", "Domain Specific ID", base.HEX, {[DOMAIN] = "Sextant"}),
	ds_instruction = ProtoField.uint16("int.ds_instruction", "Domain-specific instruction", base.HEX),
	ds_flags = ProtoField.uint16("int.ds_flags", "Domain-specific flags", base.HEX),
	free_slots = ProtoField.uint8("int.free_slots", "Free slots (Sextant)"),
	free = ProtoField.bytes("int.free", "Free slot"),
	hop = ProtoField.bytes("int.hop", "Hop"),
	source = ProtoField.bytes("int.source", "Metadata of the source alone"),
}
local IM = metadata_fields("int")

local report = Proto("telemetry_report", "Telemetry Report 2.0")
local R = {
	version = ProtoField.uint32("telemetry_report.version", "Version", base.DEC, nil, 0xf0000000),
	hardware = ProtoField.uint32("telemetry_report.hardware", "Hardware", base.DEC, nil, 0x0fc00000),
	sequence = ProtoField.uint32("telemetry_report.sequence", "Sequence number", base.DEC, nil, 0x003fffff),
	node = ProtoField.uint32("telemetry_report.node", "Node ID"),
	report = ProtoField.bytes("telemetry_report.report", "Report"),
	type = ProtoField.uint8("telemetry_report.type", "Report type", base.DEC,
		{[0] = "Inner only", [1] = "INT", [2] = "IOAM"}, 0xf0),
	inner_type = ProtoField.uint8("telemetry_report.inner_type", "Inner type", base.DEC,
		{[0] = "None", [1] = "TLV", [2] = "Domain-specific", [3] = "Ethernet", [4] = "IPv4", [5] = "IPv6"}, 0x0f),
	words = ProtoField.uint8("telemetry_report.words", "Report length (words)"),
	metadata_words = ProtoField.uint8("telemetry_report.metadata_words", "Metadata length (words)"),
	dropped = ProtoField.bool("telemetry_report.dropped", "Dropped", 8, nil, 0x80),
	congested = ProtoField.bool("telemetry_report.congested", "Congested queue", 8, nil, 0x40),
	tracked = ProtoField.bool("telemetry_report.tracked", "Tracked flow", 8, nil, 0x20),
	intermediate = ProtoField.bool("telemetry_report.intermediate", "Intermediate", 8, nil, 0x10),
	bits = ProtoField.uint16("telemetry_report.bits", "Metadata bits", base.HEX),
	domain = ProtoField.uint16("telemetry_report.domain", "Domain Specific ID", base.HEX, {[DOMAIN] = "Sextant"}),
	ds_bits = ProtoField.uint16("telemetry_report.ds_bits", "Domain-specific bits", base.HEX),
	ds_status = ProtoField.uint16("telemetry_report.ds_status", "Domain-specific status", base.HEX),
	idle_gap = ProtoField.uint32("telemetry_report.idle_gap", "Idle gap (us)"),
	flow_hash = ProtoField.uint32("telemetry_report.flow_hash", "Flow hash", base.HEX),
	inner = ProtoField.bytes("telemetry_report.inner", "Inner contents"),
	tlv = ProtoField.bytes("telemetry_report.tlv", "TLV"),
	tlv_type = ProtoField.uint8("telemetry_report.tlv_type", "TLV type", base.DEC,
		{[0] = "Domain-specific", [1] = "Ethernet", [2] = "IPv4", [3] = "IPv6"}, 0xf0),
	tlv_template = ProtoField.uint16("telemetry_report.tlv_template", "TLV template", base.HEX),
	source4 = ProtoField.ipv4("telemetry_report.inner_source4", "Inner source"),
	destination4 = ProtoField.ipv4("telemetry_report.inner_destination4", "Inner destination"),
	source6 = ProtoField.ipv6("telemetry_report.inner_source6", "Inner source"),
	destination6 = ProtoField.ipv6("telemetry_report.inner_destination6", "Inner destination"),
	source_port = ProtoField.uint16("telemetry_report.inner_source_port", "Inner source port"),
	destination_port = ProtoField.uint16("telemetry_report.inner_destination_port", "Inner destination port"),
}
local RM = metadata_fields("telemetry_report.metadata")

local function values(...)
	local all = {}
	for _, fields in ipairs({...}) do
		for _, f in pairs(fields) do all[#all + 1] = f end
	end
	return all
end
int.fields = values(I, IM)
report.fields = values(R, RM)

local cut = ProtoExpert.new("int.cut", "The octets end before what the lengths announce",
	expert.group.UNDECODED, expert.severity.NOTE)
local wrong = ProtoExpert.new("int.wrong", "A length contradicts another field",
	expert.group.PROTOCOL, expert.severity.ERROR)
int.experts = {cut, wrong}
local report_cut = ProtoExpert.new("telemetry_report.cut", "The octets end before what the lengths announce",
	expert.group.UNDECODED, expert.severity.NOTE)
local report_wrong = ProtoExpert.new("telemetry_report.wrong", "A length contradicts another field",
	expert.group.PROTOCOL, expert.severity.ERROR)
report.experts = {report_cut, report_wrong}

int.prefs.port = Pref.uint("UDP port", 33122, "UDP destination port behind which packets carry INT")
report.prefs.port = Pref.uint("UDP port", 32766, "UDP destination port of reports")

-- words of 4 octets that instructions ask of each node
local function words_of(bits)
	local words = 0
	for _, i in ipairs(INSTRUCTIONS) do
		if bit.band(bits, i[1]) ~= 0 then words = words + i[2] / WORD end
	end
	return words
end

-- all octets are ones: the node does not know
local function unknown(range)
	for i = 0, range:len() - 1 do
		if range(i, 1):uint() ~= 255 then return false end
	end
	return true
end

local function add(tree, field, range)
	local item = tree:add(field, range)
	if unknown(range) then item:append_text(" [not known]") end
end

-- what each instruction means, in this range
local MEANING = {
	[0x8000] = function(t, f, r) add(t, f.node, r) end,
	[0x4000] = function(t, f, r) add(t, f.ingress, r(0, 2)); add(t, f.egress, r(2, 2)) end,
	[0x2000] = function(t, f, r) add(t, f.latency, r) end,
	[0x1000] = function(t, f, r) t:add(f.queue, r(0, 1)); add(t, f.occupancy, r(1, 3)) end,
	[0x0800] = function(t, f, r) add(t, f.ingress_time, r) end,
	[0x0400] = function(t, f, r) add(t, f.egress_time, r) end,
	[0x0200] = function(t, f, r) add(t, f.wide_ingress, r(0, 4)); add(t, f.wide_egress, r(4, 4)) end,
	[0x0100] = function(t, f, r) add(t, f.utilization, r) end,
	[0x0080] = function(t, f, r) t:add(f.buffer, r(0, 1)); add(t, f.buffer_occupancy, r(1, 3)) end,
}

-- adds what bits announce at the start of a range, and returns the octets that it takes
local function metadata(tree, fields, bits, range)
	local at = 0
	for _, i in ipairs(INSTRUCTIONS) do
		if bit.band(bits, i[1]) ~= 0 then
			local meaning = MEANING[i[1]]
			if meaning then
				meaning(tree, fields, range(at, i[2]))
			else
				tree:add(fields.reserved, range(at, i[2]))
			end
			at = at + i[2]
		end
	end
	return at
end

-- one hop of a stack of INT-MD: the checksum complement is behind the domain-specific part
local function hop(tree, bits, range)
	local complement = bit.band(bits, 1) ~= 0 and WORD or 0
	local before = metadata(tree, IM, bit.band(bits, 0xfffe), range)
	if range:len() > before + complement then
		tree:add(IM.domain_specific, range(before, range:len() - before - complement))
	end
	if complement > 0 then tree:add(IM.checksum, range(range:len() - WORD, WORD)) end
end

-- the stack of INT-MD: the newest node first
local function stack(tree, range, hop_words, bits, free)
	local size = hop_words * WORD
	local hops = size > 0 and math.floor(range:len() / size) or 0
	for i = 0, hops - 1 do
		local r = range(i * size, size)
		if i < free then
			tree:add(I.free, r)
		else
			local t = tree:add(I.hop, r)
			t:set_text(string.format("Hop %d", hops - i))
			hop(t, bits, r)
		end
	end
	if range:len() > hops * size then
		tree:add(I.source, range(hops * size, range:len() - hops * size))
	end
	return hops - math.min(free, hops)
end

-- INT at the start of a buffer; returns its octets, what the shim says, and how many hops wrote, or
-- nil if it is not INT or cut off
local function int_at(tvb, tree)
	if tvb:len() < 4 then
		tree:add_proto_expert_info(cut)
		return nil
	end
	local kind, npt = bit.rshift(tvb(0, 1):uint(), 4), bit.band(bit.rshift(tvb(0, 1):uint(), 2), 3)
	local size = 4 + WORD * tvb(1, 1):uint()
	local t = tree:add(int, tvb(0, math.min(size, tvb:len())))
	t:add(I.type, tvb(0, 1))
	t:add(I.npt, tvb(0, 1))
	t:add(I.words, tvb(1, 1))
	t:add(npt == 1 and I.port or npt == 2 and I.protocol or I.value,
		npt == 2 and tvb(3, 1) or tvb(2, 2))
	if size > tvb:len() then
		t:add_proto_expert_info(cut)
		return nil
	end
	if size < 16 or (kind ~= 1 and kind ~= 3) then
		t:add_proto_expert_info(wrong)
		return nil
	end
	local h = tvb(4, 12)
	local bits, domain, flags = h(4, 2):uint(), h(6, 2):uint(), h(10, 2):uint()
	t:add(I.version, h(0, 1))
	t:add(I.discard, h(0, 1))
	if kind == 1 then
		t:add(I.hops_exceeded, h(0, 1))
		t:add(I.mtu_exceeded, h(0, 1))
		t:add(I.hop_words, h(2, 1))
		t:add(I.remaining, h(3, 1))
	end
	t:add(I.instructions, h(4, 2))
	t:add(I.domain, h(6, 2))
	t:add(I.ds_instruction, h(8, 2))
	local f = t:add(I.ds_flags, h(10, 2))
	local free = 0
	if kind == 1 and domain == DOMAIN then
		free = bit.band(flags, 255)
		f:add(I.free_slots, h(11, 1))
	end
	local hops = 0
	local hop_words = bit.band(h(2, 1):uint(), 31)
	if kind == 3 then
		if size > 16 then t:add(I.source, tvb(16, size - 16)) end
	elseif words_of(bits) > hop_words then
		t:add_proto_expert_info(wrong)
	elseif size > 16 then
		hops = stack(t, tvb(16, size - 16), hop_words, bits, free)
	end
	t:append_text(string.format(", %s, %d hops", kind == 1 and "MD" or "MX", hops))
	return size, npt, tvb(2, 2):uint(), hops
end

-- calls a dissector on what is inside; what is damaged there is said, and does not end this one
local function call(dissector, tvb, pinfo, tree)
	if dissector and not pcall(dissector.call, dissector, tvb, pinfo, tree) then
		tree:append_text(" [damaged]")
	end
end

function int.dissector(tvb, pinfo, tree)
	local size, npt, value, hops = int_at(tvb, tree)
	if not size then return tvb:len() end
	local rest = size < tvb:len() and tvb(size):tvb() or nil
	if rest and npt == 2 then
		call(DissectorTable.get("ip.proto"):get_dissector(bit.band(value, 255)), rest, pinfo, tree)
	elseif rest and npt == 1 then
		call(DissectorTable.get("udp.port"):get_dissector(value), rest, pinfo, tree)
	end
	pinfo.cols.protocol = "INT"
	pinfo.cols.info:prepend(string.format("INT, %d hops; ", hops))
	return tvb:len()
end

-- Packets in reports are often cut off, which Wireshark's own dissectors call malformed. Of these,
-- addresses, ports and INT are shown here.

local inner_ip

-- what follows a header with a protocol number
local function inner_next(protocol, tvb, at, tree)
	if at >= tvb:len() then return end
	if protocol == 4 then return inner_ip(tvb(at):tvb(), tree, 4) end
	if protocol == 41 then return inner_ip(tvb(at):tvb(), tree, 6) end
	if protocol == 0 or protocol == 43 or protocol == 60 then
		if at + 2 > tvb:len() then return end
		return inner_next(tvb(at, 1):uint(), tvb, at + 8 + 8 * tvb(at + 1, 1):uint(), tree)
	end
	if (protocol == 6 or protocol == 17) and at + 4 <= tvb:len() then
		tree:add(R.source_port, tvb(at, 2))
		tree:add(R.destination_port, tvb(at + 2, 2))
		if protocol == 17 and tvb(at + 2, 2):uint() == int.prefs.port and at + 8 < tvb:len() then
			local size, npt, value = int_at(tvb(at + 8):tvb(), tree)
			if size and npt == 2 then inner_next(bit.band(value, 255), tvb, at + 8 + size, tree) end
		end
	end
end

function inner_ip(tvb, tree, version)
	local fixed = version == 4 and 20 or 40
	if tvb:len() < fixed then
		tree:add_proto_expert_info(report_cut)
		return
	end
	if version == 4 then
		tree:add(R.source4, tvb(12, 4))
		tree:add(R.destination4, tvb(16, 4))
		if bit.band(tvb(6, 2):uint(), 0x1fff) == 0 then
			inner_next(tvb(9, 1):uint(), tvb, 4 * bit.band(tvb(0, 1):uint(), 15), tree)
		end
		return
	end
	tree:add(R.source6, tvb(8, 16))
	tree:add(R.destination6, tvb(24, 16))
	inner_next(tvb(6, 1):uint(), tvb, 40, tree)
end

-- whether an IP packet is there as far as its header says
local function whole(tvb, version)
	if version == 4 then return tvb:len() >= 20 and tvb:len() >= tvb(2, 2):uint() end
	return tvb:len() >= 40 and tvb:len() >= 40 + tvb(4, 2):uint()
end

local VERSION = {[0x0800] = 4, [0x86dd] = 6}

local function inner(kind, range, pinfo, tree)
	local t = tree:add(R.inner, range)
	local tvb = range:tvb()
	local version = kind == 4 and 4 or kind == 5 and 6 or nil
	local link = kind == 3 and 14 or 0
	if kind == 3 then
		if tvb:len() < 14 then return end
		version = VERSION[tvb(12, 2):uint()]
	end
	if not version then return end
	local packet = link > 0 and tvb:len() > link and tvb(link):tvb() or tvb
	if whole(packet, version) then
		call(Dissector.get(link > 0 and "eth_withoutfcs" or version == 4 and "ip" or "ipv6"), tvb,
			pinfo, t)
	else
		t:append_text(" [cut off]")
		inner_ip(packet, t, version)
	end
end

local function tlvs(range, tree)
	local at = 0
	while at + WORD <= range:len() do
		local size = WORD + WORD * range(at + 1, 1):uint()
		if at + size > range:len() then break end
		local t = tree:add(R.tlv, range(at, size))
		t:add(R.tlv_type, range(at, 1))
		t:add(R.tlv_template, range(at + 2, 2))
		at = at + size
	end
	if at < range:len() then tree:add_proto_expert_info(report_cut) end
end

-- the main contents of a report about INT; returns their octets
local function main_contents(tree, body, metadata_size, congested)
	local bits, domain, ds_bits = body(0, 2):uint(), body(2, 2):uint(), body(4, 2):uint()
	tree:add(R.bits, body(0, 2))
	tree:add(R.domain, body(2, 2))
	tree:add(R.ds_bits, body(4, 2))
	tree:add(R.ds_status, body(6, 2))
	if WORD * words_of(bits) > metadata_size then
		tree:add_proto_expert_info(report_wrong)
		return
	end
	if metadata_size == 0 then return end
	local range = body(8, metadata_size)
	-- bit 0 is reserved, bit 15 is the reason of a drop
	local at = metadata(tree, RM, bit.band(bits, 0xfffe), range)
	if bit.band(bits, 1) ~= 0 then
		tree:add(RM.drop_queue, range(at, 1))
		tree:add(RM.drop_reason, range(at + 1, 1))
		at = at + WORD
	end
	if at == metadata_size then return end
	local own = range(at, metadata_size - at)
	if domain ~= DOMAIN then
		tree:add(RM.domain_specific, own)
		return
	end
	at = 0
	for _, field in ipairs({{0x8000, R.idle_gap}, {0x4000, R.flow_hash}}) do
		if bit.band(ds_bits, field[1]) ~= 0 and at + WORD <= own:len() then
			tree:add(field[2], own(at, WORD))
			at = at + WORD
		end
	end
	if at < own:len() then tree:add(RM.domain_specific, own(at, own:len() - at)) end
end

-- one report at the start of a range; returns its octets, or nil if there is none
local function one(range, number, pinfo, tree)
	local words, metadata_size = range(1, 1):uint(), WORD * range(2, 1):uint()
	local size = words == 255 and range:len() or WORD + WORD * words
	if size > range:len() then
		tree:add_proto_expert_info(report_cut)
		return nil
	end
	local t = tree:add(R.report, range(0, size))
	t:set_text(string.format("Report %d", number))
	local kind, inner_kind = bit.rshift(range(0, 1):uint(), 4), bit.band(range(0, 1):uint(), 15)
	t:add(R.type, range(0, 1))
	t:add(R.inner_type, range(0, 1))
	t:add(R.words, range(1, 1))
	t:add(R.metadata_words, range(2, 1))
	for _, flag in ipairs({R.dropped, R.congested, R.tracked, R.intermediate}) do
		t:add(flag, range(3, 1))
	end
	local main = (kind == 1 and 8 or 0) + metadata_size
	if WORD + main > size then
		t:add_proto_expert_info(report_wrong)
		return size
	end
	if kind == 1 then main_contents(t, range(WORD, size - WORD), metadata_size) end
	if size == WORD + main then return size end
	local contents = range(WORD + main, size - WORD - main)
	if inner_kind == 1 then
		tlvs(contents, t)
	else
		inner(inner_kind, contents, pinfo, t)
	end
	return size
end

function report.dissector(tvb, pinfo, tree)
	local t = tree:add(report, tvb())
	if tvb:len() < 8 then
		t:add_proto_expert_info(report_cut)
		return tvb:len()
	end
	t:add(R.version, tvb(0, 4))
	t:add(R.hardware, tvb(0, 4))
	t:add(R.sequence, tvb(0, 4))
	t:add(R.node, tvb(4, 4))
	local at, number = 8, 0
	while at + WORD <= tvb:len() do
		local size = one(tvb(at), number + 1, pinfo, t)
		if not size then break end
		at, number = at + size, number + 1
	end
	if at < tvb:len() and tvb:len() - at < WORD then t:add_proto_expert_info(report_cut) end
	pinfo.cols.protocol = "Telemetry"
	pinfo.cols.info = string.format("Node %d, sequence %d, %d reports", tvb(4, 4):uint(),
		bit.band(tvb(0, 4):uint(), 0x3fffff), number)
	return tvb:len()
end

-- the ports change with the preferences
local ports = {}
local function register(protocol)
	local udp = DissectorTable.get("udp.port")
	if ports[protocol.name] then udp:remove(ports[protocol.name], protocol) end
	ports[protocol.name] = protocol.prefs.port
	udp:add(ports[protocol.name], protocol)
end
for _, protocol in ipairs({int, report}) do
	protocol.prefs_changed = function() register(protocol) end
	register(protocol)
end

-- SRv6 Path Tracing (draft-filsfils-ippm-path-tracing): an IPv6 option, which Wireshark leaves
-- unknown. Each node has three octets, the newest first; free room is zero, at the end.
local PATH_TRACING, MIDPOINT = 0x32, 3
local tracing = Proto("path_tracing", "SRv6 Path Tracing")
local T = {
	node = ProtoField.bytes("path_tracing.node", "Node"),
	interface = ProtoField.uint24("path_tracing.interface", "Egress interface", base.DEC, nil, 0xfff000),
	load = ProtoField.uint24("path_tracing.load", "Load", base.DEC, nil, 0x000f00),
	time = ProtoField.uint24("path_tracing.time", "Truncated time", base.DEC, nil, 0x0000ff),
	free = ProtoField.bytes("path_tracing.free", "Free"),
}
tracing.fields = values(T)
local tracing_cut = ProtoExpert.new("path_tracing.cut", "The octets end before what the lengths announce",
	expert.group.UNDECODED, expert.severity.NOTE)
tracing.experts = {tracing_cut}
local option_type = Field.new("ipv6.opt.type")

local function midpoints(data, tree)
	local written = 0
	for at = 0, data:len() - MIDPOINT, MIDPOINT do
		if data(at, MIDPOINT):uint() ~= 0 then written = at + MIDPOINT end
	end
	for at = 0, written - MIDPOINT, MIDPOINT do
		local node = data(at, MIDPOINT)
		local t = tree:add(T.node, node)
		t:add(T.interface, node)
		t:add(T.load, node)
		t:add(T.time, node)
	end
	if written < data:len() then tree:add(T.free, data(written)) end
end

function tracing.dissector(tvb, _, tree)
	for _, kind in ipairs({option_type()}) do
		local at = kind.offset
		if kind.range(0, 1):uint() == PATH_TRACING and at + 2 <= tvb:len() then
			local length = tvb(at + 1, 1):uint()
			local present = math.min(length, tvb:len() - at - 2)
			local t = tree:add(tracing, tvb(at, 2 + present))
			if present > 0 then midpoints(tvb(at + 2, present), t) end
			if present < length then t:add_proto_expert_info(tracing_cut) end
		end
	end
end

register_postdissector(tracing)
