#include <gtest/gtest.h>

#include <iterator>
#include <regex>

#include "unit/support/warned.h"

namespace ptkit::trace {
namespace {

struct Case {
  WarningCode code;
  std::vector<std::string> arguments;
  std::string sentence;
};

// Every sentence; with plural forms, for one and for two.
const std::vector<Case>& cases() {
  // clang-format off
  static const std::vector<Case> all{
    {WarningCode::RECORDED, {"A sentence."}, "A sentence."},
    {WarningCode::KERNEL_CODE_MISSING, {"aa"}, "Kernel code is missing: aa."},
    {WarningCode::KERNEL_CODE_CHANGED, {"1"}, "The kernel changed 1 page of its own code while recording: rows of kernel code may be wrong or missing there."},
    {WarningCode::KERNEL_CODE_CHANGED, {"2"}, "The kernel changed 2 pages of its own code while recording: rows of kernel code may be wrong or missing there."},
    {WarningCode::RECORDING_FAILED, {"aa"}, "The recording stopped early: aa. Later data is missing."},
    {WarningCode::RECORDING_FAILED_AT, {"aa", "bb"}, "The recording stopped early at bb: aa. Later data is missing."},
    {WarningCode::RECORDING_UNFINISHED, {"aa"}, "The recording has no end: the recorder was killed, the disk was full, or the file was cut. Data after the last save at aa is missing."},
    {WarningCode::RECORDING_NOT_SAVED, {}, "The recording has no end: the recorder was killed, the disk was full, or the file was cut. It was never saved as a whole: parts are missing."},
    {WarningCode::PROGRAM_END_UNKNOWN, {}, "The recording does not tell how the program ended."},
    {WarningCode::PROGRAM_RUNNING, {"7", "1"}, "The program was still running when the recording ended (7 of 1 thread)."},
    {WarningCode::PROGRAM_RUNNING, {"7", "2"}, "The program was still running when the recording ended (7 of 2 threads)."},
    {WarningCode::WARNINGS_DROPPED, {"aa"}, "There are more than aa warnings: the rest is dropped."},
    {WarningCode::PIP_LIMIT, {"aa"}, "Context switches could not be aligned to PIP packets (more than aa changes of CR3). Kernel instructions near a switch may be attributed to the wrong thread."},
    {WarningCode::PIP_UNREADABLE, {"aa"}, "Context switches could not be aligned to PIP packets. Kernel instructions near a switch may be attributed to the wrong thread: aa."},
    {WarningCode::PIP_NO_FILE, {}, "Context switches could not be aligned to PIP packets: the output is no file. Kernel instructions near a switch may be attributed to the wrong thread."},
    {WarningCode::PIP_INTERRUPTED, {}, "Context switches could not be aligned to PIP packets: ptkit was interrupted. Kernel instructions near a switch may be attributed to the wrong thread."},
    {WarningCode::SWITCHES_CUT, {"aa", "bb"}, "There is no perf record at byte aa of bb: later context switches are unknown."},
    {WarningCode::SWITCHES_UNSORTED, {}, "The context switches are not in the order of time: they were sorted."},
    {WarningCode::IMAGE_UNREADABLE, {"aa"}, "An image cannot be used: aa."},
    {WarningCode::IMAGE_SIZE_MISMATCH, {"1", "7"}, "The image takes 1 byte of memory and the recorded module 7: the image may be another build."},
    {WarningCode::IMAGE_SIZE_MISMATCH, {"2", "7"}, "The image takes 2 bytes of memory and the recorded module 7: the image may be another build."},
    {WarningCode::BUILD_ID_MISMATCH, {"aa", "bb", "cc"}, "'aa' has build-id bb and the recording has cc: the file may not have the code that ran."},
    {WarningCode::JITDUMP_INVALID, {}, "The file is no jitdump file: JIT code is missing."},
    {WarningCode::JITDUMP_CUT, {"aa"}, "The jitdump file is cut at byte aa: later JIT code is missing."},
    {WarningCode::FILES_CONTRADICT, {"1", "/bin/p is another"}, "1 file is not what the recording mapped and is not used: /bin/p is another."},
    {WarningCode::FILES_NEWER, {"2", "/bin/p; /bin/q"}, "2 files without recorded build-ids changed after the recording: /bin/p; /bin/q. They may not have the code that ran."},
    {WarningCode::FILE_LIKELY_OTHER, {"1", "liba.so"}, "The code of liba.so contradicts the packets (1 decode error): it may not be the code that ran, and rows there may be wrong."},
    {WarningCode::FILE_LIKELY_OTHER, {"9", "liba.so"}, "The code of liba.so contradicts the packets (9 decode errors): it may not be the code that ran, and rows there may be wrong."},
    {WarningCode::CODE_MOVED, {"1", "[0x1000, 0x2000) of /bin/p"}, "1 mapping of anonymous memory lies over code of a file: [0x1000, 0x2000) of /bin/p. The file's code and names are used there."},
    {WarningCode::ARCHITECTURE_OTHER, {"aarch64"}, "The recording is of architecture aarch64: branches have their addresses, and no code, kinds or names. Files for x86 are not used."},
    {WarningCode::LBR_NEWEST_TWICE, {"2"}, "In 2 full branch stacks the newest record is a copy of the one before: some processors store it twice. Copies to which the code does not lead are left out."},
    {WarningCode::PERF_FILTER_UNUSED, {"filter f", "it is no number"}, "A part of the address filter (filter f) is not used: it is no number. Code that was not traced may be followed there."},
    {WarningCode::JITDUMP_NO_TSC, {}, "The jitdump file has no TSC timestamps: the last JIT function at an address is used for the whole trace."},
    {WarningCode::JITDUMP_MISSING, {}, "The jitdump file does not exist any more: JIT code is missing."},
    {WarningCode::JIT_LIMIT, {"aa"}, "The jitdump files have more than aa JIT functions: the code of some is missing."},
    {WarningCode::JIT_NAMES_LIMIT, {"aa", "bb"}, "Names of JIT code exceed the limits (aa names in bb files): the others are missing."},
    {WarningCode::JIT_NAMES_REFUSED, {}, "The file with names of JIT code is no regular file, does not belong to the process's user, or has several names: it was not read."},
    {WarningCode::JIT_CODE_MISSING, {"aa"}, "JIT code is not in the bundle: aa."},
    {WarningCode::FILES_REPLACED, {"aa"}, "Files were replaced after they were mapped (aa): their code was read from the memory of processes, where possible."},
    {WarningCode::FILES_TOO_LARGE, {"aa", "bb", "cc"}, "Files or mappings exceed the limits (aa MiB each, bb MiB in all, less where memory is short): cc. Their code and symbols are missing."},
    {WarningCode::FILES_SHRUNK, {"aa"}, "Files are shorter than at the time of their mapping: aa. Their code is missing."},
    {WarningCode::FILES_NOT_PARSED, {"aa", "bb"}, "Files could not be parsed (bb): aa. Their symbols, build-ids and JIT code are missing."},
    {WarningCode::CHUNK_BYTES_SKIPPED, {"1", "7"}, "1 byte at byte 7 belongs to no chunk and was skipped."},
    {WarningCode::CHUNK_BYTES_SKIPPED, {"2", "7"}, "2 bytes at byte 7 belong to no chunk and were skipped."},
    {WarningCode::CHUNK_CUT, {"aa", "bb"}, "The file ends inside the aa chunk at byte bb: the chunk was dropped."},
    {WarningCode::CHUNK_DAMAGED, {"aa"}, "A damaged chunk was skipped: aa."},
    {WarningCode::CHUNK_REPEATED, {"aa", "bb"}, "The DATA chunk at byte aa repeats bytes of stream bb and was skipped."},
    {WarningCode::CHUNK_RECORD_CUT, {"aa", "bb"}, "The aa chunk at byte bb ends inside a record."},
    {WarningCode::CHUNK_TYPE_UNKNOWN, {"aa"}, "Chunks of unknown type aa were skipped."},
    {WarningCode::CHUNK_INDEX_DAMAGED, {}, "The INDX chunk is damaged: the chunks were found without it."},
    {WarningCode::REFERENCES_DROPPED, {"1"}, "1 reference to spaces or files that the bundle does not have was dropped."},
    {WarningCode::REFERENCES_DROPPED, {"2"}, "2 references to spaces or files that the bundle does not have were dropped."},
    {WarningCode::STREAM_NOT_DESCRIBED, {"aa"}, "Stream aa has data and no STRM chunk: its thread is unknown."},
    {WarningCode::STREAM_BYTES_MISSING, {"1", "7", "7"}, "1 byte of stream 7 is missing before its byte 7."},
    {WarningCode::STREAM_BYTES_MISSING, {"2", "7", "7"}, "2 bytes of stream 7 are missing before its byte 7."},
    {WarningCode::PERF_NOT_FINISHED, {}, "perf did not finish the file: perf crashed or was killed. Records are read up to the end of the file."},
    {WarningCode::PERF_CUT, {"1"}, "The file is cut: at least 1 byte of records is missing."},
    {WarningCode::PERF_CUT, {"2"}, "The file is cut: at least 2 bytes of records are missing."},
    {WarningCode::PERF_ATTRS_INVALID, {}, "The header gives a wrong offset for the event attributes: times and threads are unknown."},
    {WarningCode::PERF_IDS_INVALID, {}, "The events have more ids than fit into the file: some events are unknown."},
    {WarningCode::PERF_FEATURES_CUT, {}, "The table of header features is cut."},
    {WarningCode::PERF_FEATURES_MISSING, {"aa"}, "Header features that lie after the end of the file are not read: aa."},
    {WarningCode::PERF_RECORD_CUT, {"aa"}, "The record at byte aa is cut: the rest of it is missing."},
    {WarningCode::PERF_RECORD_DAMAGED, {"aa"}, "There is no valid record at byte aa: the rest of the file is not read."},
    {WarningCode::PERF_RECORDS_DAMAGED, {"aa", "bb"}, "There is no valid record at byte aa: records up to the AUXTRACE record at byte bb are not read."},
    {WarningCode::PERF_DAMAGE_REPEATED, {"1"}, "1 more position is damaged in the same way."},
    {WarningCode::PERF_DAMAGE_REPEATED, {"2"}, "2 more positions are damaged in the same way."},
    {WarningCode::COMPRESSED_GAP, {"aa"}, "The COMPRESSED record at byte aa continues a record that is missing: neither it nor later COMPRESSED records are read."},
    {WarningCode::COMPRESSED_DAMAGED, {"aa", "bb"}, "The COMPRESSED record at byte aa cannot be decompressed (bb): neither it nor later COMPRESSED records are read."},
    {WarningCode::COMPRESSED_TOO_LARGE, {"aa"}, "The COMPRESSED record at byte aa decompresses to more than perf records do: neither it nor later COMPRESSED records are read."},
    {WarningCode::COMPRESSED_INVALID, {"aa"}, "The COMPRESSED record at byte aa contains bytes that are no record: neither it nor later COMPRESSED records are read."},
    {WarningCode::COMPRESSED_CUT, {}, "The last COMPRESSED record ends inside a record, which is not read."},
    {WarningCode::COMPRESSED_NESTED, {"1"}, "1 unexpected AUXTRACE or COMPRESSED record inside COMPRESSED records was skipped."},
    {WarningCode::COMPRESSED_NESTED, {"2"}, "2 unexpected AUXTRACE or COMPRESSED records inside COMPRESSED records were skipped."},
    {WarningCode::NO_TIMESTAMPS, {}, "perf.data has no timestamps (--per-thread without -T). If a mapping was replaced, the last one is used for the whole trace."},
    {WarningCode::NO_TIME_CONVERSION, {}, "Times of perf cannot be converted to TSC (no time_zero): mappings and running threads are assumed for the whole trace."},
    {WarningCode::MAPPINGS_INHERITED_LIMIT, {}, "Processes inherited more mappings than a recording of this size can have: code of some is missing."},
    {WarningCode::KCORE_MISSING, {}, "Kernel code is missing and cannot be added later."},
    {WarningCode::PERF_CPUID_UNKNOWN, {"aa"}, "'aa' names no processor: the workarounds of all errata apply."},
    {WarningCode::PERF_RECORDS_LOST, {"1"}, "perf LOST 1 record: mappings or context switches may be missing."},
    {WarningCode::PERF_RECORDS_LOST, {"2"}, "perf LOST 2 records: mappings or context switches may be missing."},
    {WarningCode::PERF_SAMPLES_LOST, {"1"}, "perf LOST 1 sample: the data in it is missing."},
    {WarningCode::PERF_SAMPLES_LOST, {"2"}, "perf LOST 2 samples: the data in them is missing."},
    {WarningCode::PERF_RECORDS_SHORT, {"1"}, "1 record is too short for its type and was skipped."},
    {WarningCode::PERF_RECORDS_SHORT, {"2"}, "2 records are too short for their types and were skipped."},
    {WarningCode::RECORD_TYPE_UNKNOWN, {"1", "7"}, "1 record of unknown type 7 was skipped."},
    {WarningCode::RECORD_TYPE_UNKNOWN, {"2", "7"}, "2 records of unknown type 7 were skipped."},
    {WarningCode::AUXTRACE_ERRORS, {"1", "Bad packet"}, "An earlier decoder wrote 1 AUXTRACE_ERROR record, the first: Bad packet."},
    {WarningCode::AUXTRACE_ERRORS, {"2", "Bad packet"}, "An earlier decoder wrote 2 AUXTRACE_ERROR records, the first: Bad packet."},
    {WarningCode::BRANCH_STACKS_SKIPPED, {"1"}, "1 branch stack of samples is not read: the recording has a trace of all branches."},
    {WarningCode::BRANCH_STACKS_SKIPPED, {"2"}, "2 branch stacks of samples are not read: the recording has a trace of all branches."},
    {WarningCode::PEBS_EVENT_UNKNOWN, {"1"}, "1 AUX_OUTPUT_HW_ID record names a PEBS counter without an event id: PEBS records in the trace may be of an unknown event."},
    {WarningCode::PEBS_EVENT_UNKNOWN, {"2"}, "2 AUX_OUTPUT_HW_ID records name a PEBS counter without an event id: PEBS records in the trace may be of an unknown event."},
    {WarningCode::GUEST_MAPPINGS_SKIPPED, {"1"}, "1 mapping of virtual machines is not read: guest code is unknown."},
    {WarningCode::GUEST_MAPPINGS_SKIPPED, {"2"}, "2 mappings of virtual machines are not read: guest code is unknown."},
    {WarningCode::GUEST_RECORDS_SKIPPED, {"1", "7"}, "1 record of the virtual machine of process 7 is not read: ptkit does not distinguish processes of a guest."},
    {WarningCode::GUEST_RECORDS_SKIPPED, {"2", "7"}, "2 records of the virtual machine of process 7 are not read: ptkit does not distinguish processes of a guest."},
    {WarningCode::BTS_RECORD_CUT, {"aa", "bb"}, "The last BTS record has only aa of bb bytes and was dropped."},
    {WarningCode::BTS_RING_ORDERED, {"aa"}, "The buffer is a ring: record aa cannot follow the record before it, so it is the oldest one, and the records were put in order."},
    {WarningCode::BTS_ORDER_UNKNOWN, {}, "The buffer is full, so it may be a ring, and its records do not tell which one is the oldest: they are read in the order of the buffer."},
    {WarningCode::LLDB_CPU_INVALID, {"aa", "bb", "cc"}, "cpuInfo: there is no processor of family aa, model bb, stepping cc: the workarounds of all errata apply."},
    {WarningCode::LLDB_TRACE_SHARED, {"aa"}, "'aa' is the trace of another thread, too: both threads are decoded."},
    {WarningCode::LIBIPT_SIDEBAND_CUT, {"aa"}, "There is no perf record at byte aa: later mappings are unknown."},
    {WarningCode::LIBIPT_MAPPING_CONFLICT, {"aa", "bb"}, "'aa' and 'bb' were mapped to the same addresses on different CPUs, at unknown times: the wrong code may be used."},
    {WarningCode::LIBIPT_PROCESS_CONFLICT, {"aa"}, "Code of aa processes was mapped, and context switches between them are unknown: the code is not used."},
    {WarningCode::LIBIPT_PERF_DATA_OPENED, {"aa"}, "'aa' is the source of these files and was opened instead: it has more sideband."},
    {WarningCode::LIBXDC_PAGES_UNPAIRED, {"1", "1"}, "page_cache.addr lists 1 page and page_cache.dump holds 1 whole page: pages without a partner are not used."},
    {WarningCode::LIBXDC_PAGES_UNPAIRED, {"2", "2"}, "page_cache.addr lists 2 pages and page_cache.dump holds 2 whole pages: pages without a partner are not used."},
    {WarningCode::SIMPLE_PT_NO_SIDEBAND, {}, "There is no ptout.sideband: processor, clock and code are unknown."},
    {WarningCode::SIMPLE_PT_MAPPING_LIMIT, {"1", "7"}, "1 mapping after the first 7 of ptout.sideband was skipped."},
    {WarningCode::SIMPLE_PT_MAPPING_LIMIT, {"2", "7"}, "2 mappings after the first 7 of ptout.sideband were skipped."},
    {WarningCode::SIMPLE_PT_LINES_SKIPPED, {"1"}, "1 line of ptout.sideband could not be read and was skipped."},
    {WarningCode::SIMPLE_PT_LINES_SKIPPED, {"2"}, "2 lines of ptout.sideband could not be read and were skipped."},
    {WarningCode::WINDOWS_BUFFER_CUT, {"1"}, "WindowsIntelPT cuts the last buffer at its first 16 zero bytes: the trace of 1 CPU may end early."},
    {WarningCode::WINDOWS_BUFFER_CUT, {"2"}, "WindowsIntelPT cuts the last buffer at its first 16 zero bytes: the trace of 2 CPUs may end early."},
    {WarningCode::IPTTOOL_CUT, {"aa", "bb"}, "There is no whole trace of a thread at byte aa of bb: later threads are missing."},
    {WarningCode::IPTTOOL_MTC_PERIODS, {}, "Threads were traced with different timing settings: the MTC period is unknown."},
    {WarningCode::GDB_BTRACE_CUT, {}, "The document ends inside the btrace element: later data is missing."},
    {WarningCode::XEN_RING_LAPPED, {}, "Xen does not record where its ring was overwritten before it was read: bytes that do not fit may be such positions. The settings of OS, User, TSC and DisRETC are unknown."},
    {WarningCode::DRAKVUF_EVENTS_UNTRACED, {"1"}, "1 event came without new trace (0xBAD10000): its EventUID is not in the streams."},
    {WarningCode::DRAKVUF_EVENTS_UNTRACED, {"2"}, "2 events came without new trace (0xBAD10000): their EventUIDs are not in the streams."},
    {WarningCode::DRAKVUF_LINES_SKIPPED, {"1"}, "1 line about page tables in the logs could not be read: pages of code or process names may be missing."},
    {WarningCode::DRAKVUF_LINES_SKIPPED, {"2"}, "2 lines about page tables in the logs could not be read: pages of code or process names may be missing."},
    {WarningCode::DRAKVUF_PAGES_MISSING, {"1"}, "1 page of code in the logs is missing from dumps or frames, or is not 4096 bytes long."},
    {WarningCode::DRAKVUF_PAGES_MISSING, {"2"}, "2 pages of code in the logs are missing from dumps or frames, or are not 4096 bytes long."},
    {WarningCode::DRAKVUF_CR3_REUSED, {"1"}, "1 ended process had a CR3 that was reused: rows have the PID of the first process, and the later code is used for pages that both processes saved."},
    {WarningCode::DRAKVUF_CR3_REUSED, {"2"}, "2 ended processes had a CR3 that was reused: rows have the PID of the first process, and the later code is used for pages that both processes saved."},
    {WarningCode::AUX_PARTIAL, {"1"}, "1 AUX record is PARTIAL: tracing stopped while KVM was in VMX operation."},
    {WarningCode::AUX_PARTIAL, {"2"}, "2 AUX records are PARTIAL: tracing stopped while KVM was in VMX operation."},
    {WarningCode::AUX_COLLISION, {"1"}, "1 AUX record has the flag COLLISION: trace is missing there."},
    {WarningCode::AUX_COLLISION, {"2"}, "2 AUX records have the flag COLLISION: trace is missing there."},
    {WarningCode::AUX_TRUNCATED, {"1"}, "The AUX buffer was full 1 time (TRUNCATED): trace is missing there."},
    {WarningCode::AUX_TRUNCATED, {"2"}, "The AUX buffer was full 2 times (TRUNCATED): trace is missing there."},
    {WarningCode::BUFFER_FULL, {"1"}, "The buffer was full 1 time: trace is missing there."},
    {WarningCode::BUFFER_FULL, {"2"}, "The buffer was full 2 times: trace is missing there."},
    {WarningCode::BUFFERS_LIMIT_LOCKED, {"aa"}, "Buffers have only aa KiB: no more memory may be locked."},
    {WarningCode::BUFFERS_LIMIT_MEMORY, {"7", "1", "12 MiB"}, "Buffers have only 7 KiB: there is no memory for 1 larger one (free: 12 MiB)."},
    {WarningCode::BUFFERS_LIMIT_MEMORY, {"7", "2", "12 MiB"}, "Buffers have only 7 KiB: there is no memory for 2 larger ones (free: 12 MiB)."},
    {WarningCode::RINGS_LIMIT_LOCKED, {"aa"}, "Rings of sideband records have only aa KiB, as no more memory may be locked: many context switches or mappings at a time may be LOST."},
    {WarningCode::RINGS_LIMIT_MEMORY, {"7", "1", "12 MiB"}, "Rings of sideband records have only 7 KiB, as there is no memory for 1 larger one (free: 12 MiB): many context switches or mappings at a time may be LOST."},
    {WarningCode::RINGS_LIMIT_MEMORY, {"7", "2", "12 MiB"}, "Rings of sideband records have only 7 KiB, as there is no memory for 2 larger ones (free: 12 MiB): many context switches or mappings at a time may be LOST."},
    {WarningCode::SIDEBAND_LOST, {"1"}, "1 sideband record was LOST, as the ring was full: rows may be attributed to wrong threads, and code may be missing."},
    {WarningCode::SIDEBAND_LOST, {"2"}, "2 sideband records were LOST, as the ring was full: rows may be attributed to wrong threads, and code may be missing."},
    {WarningCode::SIDEBAND_UNSUPPORTED, {}, "This driver has no sideband (context switches and mappings): rows cannot be attributed to threads, and code that was mapped while recording may be missing."},
    {WarningCode::MAPPINGS_NOT_RECORDED, {"aa"}, "perf events for sideband are refused (aa): names of threads, and code that was mapped while recording, may be missing."},
    {WarningCode::SAMPLES_THROTTLED, {"1"}, "The kernel throttled samples 1 time (kernel.perf_event_max_sample_rate, kernel.perf_cpu_time_max_percent): branch stacks and hits of triggers are missing there."},
    {WarningCode::SAMPLES_THROTTLED, {"2"}, "The kernel throttled samples 2 times (kernel.perf_event_max_sample_rate, kernel.perf_cpu_time_max_percent): branch stacks and hits of triggers are missing there."},
    {WarningCode::RECORDS_INVALID, {"1"}, "1 perf record is invalid and was skipped."},
    {WarningCode::RECORDS_INVALID, {"2"}, "2 perf records are invalid and were skipped."},
    {WarningCode::CLOCK_NOT_TSC, {}, "The clock source of the kernel is not the TSC: times of context switches and mappings are not exact."},
    {WarningCode::NO_TSC_PACKETS, {}, "Without TSC packets, rows of a CPU cannot be attributed to threads."},
    {WarningCode::PID_NAMESPACE, {}, "This seems to be a container with a PID namespace of its own: code of processes outside of it may be attributed to the kernel or to other processes."},
    {WarningCode::THREADS_BUSY, {"1", "7", "30, 31"}, "1 thread of process 7 (30, 31) could not be traced, or not on all CPUs: another tracer is active there."},
    {WarningCode::THREADS_BUSY, {"2", "7", "30, 31"}, "2 threads of process 7 (30, 31) could not be traced, or not on all CPUs: another tracer is active there."},
    {WarningCode::THREADS_NOT_FOUND, {"aa"}, "Process aa began threads again and again while its threads were searched: some threads may not be traced."},
    {WarningCode::THREADS_LATE, {"1", "7", "0"}, "1 thread of process 7 began while recording: its first instructions are missing. 0 of them ended before they could be traced."},
    {WarningCode::THREADS_LATE, {"2", "7", "1"}, "2 threads of process 7 began while recording: their first instructions are missing. 1 of them ended before it could be traced."},
    {WarningCode::EXEC_NOT_SPLIT, {"aa"}, "Cannot split BTS data at exec() (aa): the last branches before exec() may be attributed to the new program."},
    {WarningCode::KERNEL_CHANGES_UNKNOWN, {}, "The kernel of this system does not report changes of its own code (KSYMBOL, TEXT_POKE): rows of kernel code may be wrong or missing."},
    {WarningCode::CPUS_CAME_ONLINE, {"aa"}, "CPUs came online while recording and were not traced: aa."},
    {WarningCode::SINGLE_RANGE_ERRATUM, {}, "Errata of this processor limit single ranges to 4 KiB: a ring with ToPA output was used instead."},
    {WarningCode::CHILDREN_UNSUPPORTED, {}, "This driver cannot follow a process to its children: children are not traced."},
    {WarningCode::CHILDREN_NO_MEMORY, {}, "The kernel had no memory to follow some children: these children were not traced."},
    {WarningCode::TRACE_EN_CLEARED, {}, "TraceEn was cleared by another tracer, or by a hypervisor that started (VMXON): trace is missing until it could be set again."},
    {WarningCode::TRACING_FAILED, {"aa"}, "Tracing failed (aa) and ended early."},
    {WarningCode::DRIVER_RECORDS_INVALID, {"1"}, "1 byte of the driver's records is invalid and was skipped."},
    {WarningCode::DRIVER_RECORDS_INVALID, {"2"}, "2 bytes of the driver's records are invalid and were skipped."},
    {WarningCode::EXECUTION_LOG_FAILED, {}, "The log of executed instructions could not be written."},
    {WarningCode::GUEST_CALL_INVALID, {}, "The process called the recorder with an invalid message and is not recorded."},
    {WarningCode::GUEST_PARENT_UNKNOWN, {}, "The process runs code of its parent that is unknown, and is not recorded."},
    {WarningCode::GUEST_NOT_RECORDED, {"aa"}, "The process is not recorded: aa."},
    {WarningCode::GUEST_THREAD_LIMIT, {"1", "7"}, "1 thread was not recorded: there were more than 7 threads at once."},
    {WarningCode::GUEST_THREAD_LIMIT, {"2", "7"}, "2 threads were not recorded: there were more than 7 threads at once."},
    {WarningCode::GUEST_CHILDREN_UNREACHED, {"1"}, "1 child process was not recorded: it could not reach the recorder."},
    {WarningCode::GUEST_CHILDREN_UNREACHED, {"2"}, "2 child processes were not recorded: they could not reach the recorder."},
    {WarningCode::GUEST_CODE_UNTIMED, {}, "The process changed code that it had executed, at an unknown time (no timing packets): parts of the trace may be decoded with the wrong code."},
    {WarningCode::GUEST_DATA_DAMAGED, {"aa"}, "The data from the QEMU plugin is damaged (aa): the recording of the process ends there. A program that writes to memory of the plugin can cause this."},
    {WarningCode::GUEST_PROGRAM_NATIVE, {"aa"}, "'aa' is no x86-64 program: it ran outside of the emulator and is not recorded."},
    {WarningCode::GUEST_EXEC_FAILED, {"aa", "bb"}, "'aa' ran without being recorded: the emulator could not be started again (bb)."},
    {WarningCode::GUEST_INTERRUPTS, {"1"}, "The emulator continued 1 time where the code before does not lead: the trace shows an interrupt there."},
    {WarningCode::GUEST_INTERRUPTS, {"2"}, "The emulator continued 2 times where the code before does not lead: the trace shows interrupts there."},
    {WarningCode::FILE_NOT_MAPPED, {"aa"}, "'aa' was not mapped, or not this part of it."},
    {WarningCode::FUNCTION_NOT_EXECUTED, {"aa", "bb"}, "No function 'aa' was executed in bb."},
    {WarningCode::FUNCTION_NOT_EXECUTED_LIKE, {"aa", "bb", "cc"}, "No function 'aa' was executed in bb; similar names are cc."},
    {WarningCode::CPU_UNKNOWN, {}, "The processor is unknown: all errata apply that are harmless elsewhere."},
    {WarningCode::FILTER_LIKELY, {"2"}, "Packets are disabled at 2 positions where only an address filter disables them, and no filter ranges are known: rows may be wrong where packets are disabled without an IP."},
    {WarningCode::CODE_BASE_UNKNOWN, {"aa"}, "IP payloads are effective addresses (CPUID.14H.0:ECX[31] is 0): addresses of aa code are relative to the base of the code segment."},
    {WarningCode::FILES_MISSING, {"1", "liba.so"}, "1 file is missing, so code in it is not decoded: liba.so."},
    {WarningCode::FILES_MISSING, {"2", "liba.so"}, "2 files are missing, so code in them is not decoded: liba.so."},
    {WarningCode::IMAGES_MISSING, {"1", "liba.so"}, "1 file is missing, so code in it is not decoded: liba.so."},
    {WarningCode::IMAGES_MISSING, {"2", "liba.so"}, "2 files are missing, so code in them is not decoded: liba.so."},
    {WarningCode::IMAGE_DIFFERS, {"2", "7"}, "2 of 7 page dumps over the image hold other code: names from the image may be wrong there."},
    {WarningCode::SYMBOLS_ELSEWHERE, {"1"}, "None of the 1 symbol lies at code of the trace."},
    {WarningCode::SYMBOLS_ELSEWHERE, {"2"}, "None of the 2 symbols lies at code of the trace."},
    {WarningCode::DEBUG_INFO_CUT, {}, "The debug information would take more time or memory than a file of its size should: source lines and inlined functions of the rest are missing."},
    {WarningCode::DEBUG_FILE_DIFFERS, {"aa"}, "The debug file aa is of another build (build-id or checksum differ) and is not used."},
    {WarningCode::PDB_UNREADABLE, {"a.pdb", "it is cut"}, "The PDB a.pdb is not used: it is cut."},
    {WarningCode::PDB_PART_UNREADABLE, {"a.pdb", "source lines", "it is cut"}, "The PDB a.pdb is used without its source lines: it is cut."},
    {WarningCode::PDB_DIFFERS, {"a.pdb", "aa-1", "bb-1"}, "The PDB a.pdb has GUID and age aa-1 and the module bb-1: it is of another build and is not used."},
    {WarningCode::DEBUG_PART_MISSING, {"aa"}, "The debug information refers to aa (.gnu_debugaltlink), which is not there or of another build: source lines are missing."},
    {WarningCode::DEBUG_PROGRAM_DIFFERS, {}, "The program at this path was built anew since it was recorded (its build-id differs): source lines and inlined functions are missing."},
    {WarningCode::DEBUG_SPLIT_MISSING, {"aa"}, "The debug information refers to aa (split DWARF), which is not there or of another build: inlined functions are missing."},
    {WarningCode::FILES_OUTSIDE, {"aa"}, "The recording alone led to files outside of its folder: aa. `ptkit redact` does not copy these files."},
    {WarningCode::FILES_LEFT_OUT, {"aa"}, "Code and names of files outside of the recording's folder were left out: aa."},
    {WarningCode::INDEX_UNUSABLE, {"aa"}, "The index is not used: aa. The whole trace is decoded instead."},
    {WarningCode::EXPORT_BTS_FIELDS, {"aa"}, "BTS records in perf.data cannot have: aa."},
    {WarningCode::EXPORT_METADATA, {"aa"}, "Not in perf.data: aa."},
    {WarningCode::EXPORT_CONFIG_UNKNOWN, {}, "The configuration of the trace unit is unknown: perf.data has the settings that the packets show."},
    {WarningCode::EXPORT_STREAM_WITHOUT_CPU, {"aa"}, "The stream has context switches but no CPU. perf looks up context switches by CPU, so the stream is written as CPU aa, which no other stream has."},
    {WarningCode::EXPORT_STREAM_WITHOUT_TID, {"1"}, "1 stream has data of unknown threads. perf.data needs TIDs, so a TID that no other thread has is written."},
    {WarningCode::EXPORT_STREAM_WITHOUT_TID, {"2"}, "2 streams have data of unknown threads. perf.data needs TIDs, so TIDs that no other thread has are written."},
    {WarningCode::EXPORT_SPACES_UNUSED, {"1"}, "1 address space belongs to no process: perf.data cannot have its code."},
    {WarningCode::EXPORT_SPACES_UNUSED, {"2"}, "2 address spaces belong to no process: perf.data cannot have their code."},
    {WarningCode::EXPORT_GUEST_AS_HOST, {}, "The trace is of a virtual machine (PIP.NR) and is written as if it were of a host, as perf would need the recording of the host."},
    {WarningCode::EXPORT_SIGNALS, {"1"}, "1 signal is left out: perf.data has no records of signals."},
    {WarningCode::EXPORT_SIGNALS, {"2"}, "2 signals are left out: perf.data has no records of signals."},
    {WarningCode::EXPORT_TSC_AS_NS, {}, "The frequency of the TSC is unknown: the nanoseconds in perf.data are ticks of the TSC."},
    {WarningCode::EXPORT_CLOCK_UNKNOWN, {}, "The clock of perf is unknown: the nanoseconds in perf.data count from TSC 0."},
    {WarningCode::EXPORT_FILTER, {}, "Address filters cannot be expressed as perf filters: perf will show untraced instructions after a branch that leaves a filter range."},
  };
  // clang-format on
  return all;
}

TEST(Warnings, SentencesHaveTheirArguments) {
  for (const Case& one : cases()) {
    const Warning warning{.code = one.code, .arguments = one.arguments};
    EXPECT_EQ(warning.sentence(), one.sentence);
    EXPECT_EQ(one.arguments.size(), count_arguments(one.code)) << one.sentence;
  }
}

TEST(Warnings, EverySentenceIsHere) {
  for (const WarningRow& row : kWarnings) {
    EXPECT_TRUE(std::ranges::any_of(cases(), [&](const Case& one) { return one.code == row.code; }))
        << row.name;
  }
}

TEST(Warnings, SentencesArePlainAndShort) {
  const std::regex retired(R"(\b(who|whose|nobody|told|pieces?|behind|made)\b)", std::regex::icase);
  for (const Case& one : cases()) {
    const std::string text{Warning{.code = one.code, .arguments = one.arguments}.text()};
    EXPECT_FALSE(std::regex_search(text, retired)) << text;
    EXPECT_TRUE(one.sentence.ends_with('.')) << text;
    EXPECT_TRUE(text.ends_with('.')) << text;
    EXPECT_LE(one.sentence.size(), 200U) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

// Redaction drops sentences with a slash: they may name a path. Only opening says that a processor is
// unknown.
TEST(Warnings, SentencesOfBundlesHaveNoSlash) {
  for (const WarningRow& row : kWarnings) {
    if (row.code == WarningCode::CPU_UNKNOWN) continue;
    EXPECT_EQ(row.sentence.find('/'), std::string_view::npos) << row.sentence;
    EXPECT_EQ(row.remedy.find('/'), std::string_view::npos) << row.remedy;
  }
}

TEST(Warnings, CodesAreNumberedAsTheirRows) {
  for (std::size_t i = 0; i < std::size(kWarnings); ++i)
    EXPECT_EQ(static_cast<std::size_t>(kWarnings[i].code), i) << kWarnings[i].name;
  EXPECT_EQ(Warning{}.code, WarningCode::RECORDED);
}

TEST(Warnings, TextHasTheSubjectAndTheRemedy) {
  const Warning warning = warn(WarningCode::AUX_PARTIAL, 1U).at("CPU 0");
  EXPECT_EQ(warning.arguments, std::vector<std::string>{"1"});
  EXPECT_EQ(warning.text(),
            "CPU 0: 1 AUX record is PARTIAL: tracing stopped while KVM was in VMX operation. "
            "Stop virtual machines before recording.");
  EXPECT_EQ(
      warn(WarningCode::NO_TIMESTAMPS).text(),
      "perf.data has no timestamps (--per-thread without -T). If a mapping was replaced, the last one is "
      "used for the whole trace. Record with -T.");
}

TEST(Warnings, ArgumentsAreNotReadAsSentences) {
  EXPECT_EQ(warn(WarningCode::RECORDED, "{0} {1:a|b}").text(), "{0} {1:a|b}");
  EXPECT_EQ((Warning{.code = WarningCode::PERF_CUT}.sentence()),
            "The file is cut: at least ? ? of records ? missing.");
}

TEST(Warnings, SeveritiesHaveNames) {
  EXPECT_EQ(severity_name(WarningSeverity::NOTE), "NOTE");
  EXPECT_EQ(severity_name(WarningSeverity::DEGRADED), "DEGRADED");
  EXPECT_EQ(severity_name(warning_row(WarningCode::AUX_PARTIAL).severity), "LOSS");
}

}  // namespace
}  // namespace ptkit::trace
