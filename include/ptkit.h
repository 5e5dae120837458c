/*
 * The C library of ptkit: edges of one Intel PT buffer after another, for fuzzers and tools.
 * docs/c-library.md has an example and the rules; docs/coverage.md says what is counted.
 *
 *     ptkit_options options = {.size = sizeof options};
 *     ptkit_coverage *coverage = NULL;
 *     int status = ptkit_coverage_open(&options, &coverage);
 *     if (status == PTKIT_OK) status = ptkit_coverage_add_image(coverage, "a.out", PTKIT_AS_LINKED);
 *     if (status == PTKIT_OK) status = ptkit_coverage_decode(coverage, buffer, size, hits, virgin, NULL);
 *     if (status != PTKIT_OK) fprintf(stderr, "%s\n", ptkit_failure_message());
 *     ptkit_coverage_close(coverage);
 *
 * C99. No function throws, prints, ends the process or starts a thread. Functions that can fail return a
 * status. A handle serves one thread at a time: a call while another one uses it returns PTKIT_IN_USE. After
 * fork(), parent and child each have a handle of their own, if no call was under way.
 */
#ifndef PTKIT_H
#define PTKIT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PTKIT_API __attribute__((visibility("default")))
#else
#define PTKIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of the interface, as in the name of the shared library, libptkit.so.1. Changes only if programs have to be
   compiled again: functions, and members of structures that begin with their size, are added without. */
#define PTKIT_ABI_VERSION 1

PTKIT_API unsigned ptkit_abi_version(void); /* PTKIT_ABI_VERSION of the library that runs */
PTKIT_API const char* ptkit_version(void);  /* of the release: "0.1.0" */

/* Results of calls. Those up to 255 are also the codes of errors in traces, as in ptkit.ErrorCode. */
enum ptkit_status {
  PTKIT_OK = 0,
  PTKIT_NO_SYNC = 2,             /* no PSB packet in the buffer */
  PTKIT_BAD_OPCODE = 3,          /* unknown packet opcode */
  PTKIT_BAD_PACKET = 4,          /* reserved or impossible field in a packet */
  PTKIT_TRUNCATED_PACKET = 5,    /* the buffer ends inside a packet */
  PTKIT_BAD_IP_COMPRESSION = 6,  /* reserved IPBytes value */
  PTKIT_NO_IP = 7,               /* an IP is needed and the packet has none */
  PTKIT_NO_CODE = 8,             /* no code at this address */
  PTKIT_BAD_INSN = 9,            /* the code bytes are no instruction */
  PTKIT_TNT_MISMATCH = 10,       /* the code needs a TNT bit, the buffer has something else */
  PTKIT_TIP_MISMATCH = 11,       /* a target IP where the code has no indirect branch */
  PTKIT_FUP_MISMATCH = 12,       /* the code does not reach the IP of an event */
  PTKIT_INFINITE_LOOP = 13,      /* the code runs on without consuming packets */
  PTKIT_RETURN_STACK_EMPTY = 14, /* a compressed return without a call */
  PTKIT_UNEXPECTED_PACKET = 15,  /* a packet where it must not be */
  PTKIT_NO_MEMORY = 19,          /* out of memory */
  PTKIT_BAD_CONFIG = 20,         /* an argument or option is out of range */
  PTKIT_IO_ERROR = 21,           /* a file cannot be read */
  PTKIT_BAD_FILE = 22,           /* a file is no ELF or PE file for x86, or is damaged */
  PTKIT_UNSUPPORTED = 23,        /* options of a newer header */
  PTKIT_IN_USE = 256,            /* another call uses the handle */
  PTKIT_INTERNAL = 257           /* a mistake in ptkit, or read_code threw a C++ exception */
};

/* A sentence for a status; never NULL. */
PTKIT_API const char* ptkit_status_sentence(int status);

/* The last call of this thread that failed: a sentence that names the file, argument or option ("": none
   failed), and the offset of the mistake in the file that was read, or 0. Valid until the next call. */
PTKIT_API const char* ptkit_failure_message(void);
PTKIT_API uint64_t ptkit_failure_offset(void);

/* Writes up to `size` bytes of code at `address` to `out`, and returns their number; 0: there is no code.
   Asked for a page of 4 KiB first, then from the address on. What it gave is kept: see
   ptkit_coverage_forget(). It must not call functions with the handle that asks (PTKIT_IN_USE), nor leave by
   longjmp. */
typedef size_t (*ptkit_read_code)(void* argument, uint64_t address, void* out, size_t size);

enum ptkit_range_kind {
  PTKIT_RANGE_OFF = 0,
  PTKIT_RANGE_FILTER = 1, /* IA32_RTIT_CTL.ADDRn_CFG 1: packets are on within the range */
  PTKIT_RANGE_STOP = 2    /* ADDRn_CFG 2: TraceStop */
};

typedef struct ptkit_range {
  uint32_t kind; /* enum ptkit_range_kind */
  uint32_t reserved;
  uint64_t first;
  uint64_t last; /* inclusive, as in IA32_RTIT_ADDRn_B */
} ptkit_range;

enum ptkit_option_flags {
  PTKIT_RTIT_CTL_KNOWN = 1, /* rtit_ctl is valid */
  PTKIT_RESYNC_AT_PSB = 2,  /* after an error, go on at the next PSB, not at the next IP where that is safe */
  PTKIT_BEGIN_ANYWHERE = 4  /* a buffer may begin without a PSB: it is decoded from its first TIP.PGE or FUP
                               with a full IP (six or eight bytes) on */
};

/* Members that are 0 have their default. Members that a newer header adds are 0 for an older program; a
   library that does not know members that are not 0 returns PTKIT_UNSUPPORTED. */
typedef struct ptkit_options {
  size_t size;               /* sizeof(ptkit_options) */
  size_t map_size;           /* bytes of the maps: a power of two; 0: 65536 */
  ptkit_read_code read_code; /* may be NULL; called for addresses without code of images */
  void* read_code_argument;
  uint32_t flags; /* of enum ptkit_option_flags */
  /* CPUID's display family, model and stepping decide which errata apply; family 0: not known, so all of
   * them. */
  uint16_t cpu_family;
  uint16_t cpu_model;
  uint16_t cpu_stepping;
  uint16_t reserved[3];
  uint64_t rtit_ctl;     /* IA32_RTIT_CTL as it was programmed: says whether returns are compressed */
  ptkit_range ranges[4]; /* IA32_RTIT_ADDRn_A and _B as they were programmed */
} ptkit_options;

/* The result of a decode. The library writes no more than `size` bytes. */
typedef struct ptkit_outcome {
  size_t size;           /* sizeof(ptkit_outcome), set by the caller */
  uint64_t bytes;        /* of the buffer */
  uint64_t instructions; /* that were executed */
  uint64_t branches;     /* with both ends known: the sum of all counts */
  uint64_t edges;        /* different ones */
  uint64_t new_edges;    /* those that hit a byte of the virgin map for the first time */
  uint64_t errors;       /* in the buffer, or between it and the code; decoding goes on after each */
  uint64_t gaps;         /* parts of the buffer in which control flow is not known */
  int32_t new_bits;      /* 2: a new edge; 1: a new number of hits; 0: neither, or no virgin map. As AFL's
                            has_new_bits() */
  int32_t first_error;   /* status of the first error; PTKIT_OK: there is none */
  uint64_t first_error_offset; /* in the buffer */
  uint64_t first_error_ip;     /* where execution was; 0: not known */
} ptkit_outcome;

enum ptkit_branch_kind {
  PTKIT_COND = 0, /* a conditional branch, taken or not */
  PTKIT_JUMP = 1,
  PTKIT_JUMP_INDIRECT = 2,
  PTKIT_CALL = 3,
  PTKIT_CALL_INDIRECT = 4,
  PTKIT_RETURN = 5,
  PTKIT_FAR_CALL = 6, /* also INT n */
  PTKIT_FAR_RETURN = 7,
  PTKIT_FAR_JUMP = 8,
  PTKIT_SYSCALL = 9,
  PTKIT_SYSRET = 10,
  PTKIT_IRET = 11,
  PTKIT_VMENTRY = 12,
  PTKIT_VMEXIT = 13,
  PTKIT_ASYNC = 14, /* interrupt or exception */
  PTKIT_TX_ABORT = 15,
  PTKIT_UNKNOWN = 16
};

typedef struct ptkit_edge {
  uint64_t from;
  uint64_t to;
  uint64_t count;
  uint32_t hash; /* ptkit_edge_hash(from, to): byte hash & (map_size - 1) of a map */
  uint32_t kind; /* enum ptkit_branch_kind */
} ptkit_edge;

typedef struct ptkit_error {
  uint64_t offset; /* in the buffer */
  uint64_t ip;     /* where execution was; 0: not known */
  int32_t status;
  uint32_t reserved;
} ptkit_error;

/* A decoder with its code. What was decoded of the code is kept from call to call. */
typedef struct ptkit_coverage ptkit_coverage;

/* `options` may be NULL. `*coverage` is NULL after a failure. */
PTKIT_API int ptkit_coverage_open(const ptkit_options* options, ptkit_coverage** coverage);
/* NULL is allowed. No call may be under way. */
PTKIT_API void ptkit_coverage_close(ptkit_coverage* coverage);

#define PTKIT_AS_LINKED UINT64_MAX

/* Adds the code of an ELF or PE file. `address` is where its lowest loadable segment lies in memory (PE: its
   image base), or PTKIT_AS_LINKED. The file is mapped until the handle is closed. Later code hides earlier
   code at the same addresses. Code that was decoded before is decoded again. */
PTKIT_API int ptkit_coverage_add_image(ptkit_coverage* coverage, const char* path, uint64_t address);
/* Adds code in memory of the caller, which must stay until the handle is closed: it is not copied. */
PTKIT_API int ptkit_coverage_add_code(ptkit_coverage* coverage, uint64_t address, const void* code,
                                      size_t size);
/* Where code lies, and of which process it is. Set `address` in any case: 0 is an address. Other members that
   are 0 have their default; newer ones as in ptkit_options. */
enum ptkit_place_flags {
  PTKIT_CR3_KNOWN = 1,    /* cr3 is valid: the code is of the processes with this CR3 alone */
  PTKIT_LAYOUT_FILE = 2,  /* of a PE file: sections lie as on disk; */
  PTKIT_LAYOUT_MEMORY = 4 /* as in memory, as in dumps. Neither: by its contents */
};

typedef struct ptkit_place {
  size_t size;      /* sizeof(ptkit_place) */
  uint64_t address; /* as for the functions without a ptkit_place: PTKIT_AS_LINKED, or where the code lies */
  uint64_t cr3;     /* compared without PCID (11:0) and the bits above the address */
  uint32_t flags;   /* of enum ptkit_place_flags */
  uint32_t reserved[1];
} ptkit_place;

/* Since PTKIT_1.1. The same with a ptkit_place. Code with a CR3 is seen while the buffer's PIP packets say
   this CR3, and hides code without one there. So images of two processes may have the same addresses. The
   edges of each process are counted apart. `place` NULL: an image as linked; code needs one. */
PTKIT_API int ptkit_coverage_add_image_at(ptkit_coverage* coverage, const char* path,
                                          const ptkit_place* place);
PTKIT_API int ptkit_coverage_add_code_at(ptkit_coverage* coverage, const void* code, size_t size,
                                         const ptkit_place* place);
/* The code at [first, last] has changed in memory, or read_code would give other bytes. */
PTKIT_API int ptkit_coverage_forget(ptkit_coverage* coverage, uint64_t first, uint64_t last);

/* Decodes a raw buffer, which begins with a PSB: what comes before the first one is a gap, unless the options
   have PTKIT_BEGIN_ANYWHERE. Adds hits to the
   bytes of `hits`, up to 255, and clears what is no longer new in `virgin`, which begins as 0xff everywhere.
   Each map has map_size bytes or is NULL. The caller clears `hits`. `outcome` may be NULL. Errors in the
   trace are no failure: they are counted in the outcome. */
PTKIT_API int ptkit_coverage_decode(ptkit_coverage* coverage, const void* buffer, size_t size, uint8_t* hits,
                                    uint8_t* virgin, ptkit_outcome* outcome);
/* The same for a ring in two chunks, the older one first; offsets count from its first byte. */
PTKIT_API int ptkit_coverage_decode_ring(ptkit_coverage* coverage, const void* older, size_t older_size,
                                         const void* newer, size_t newer_size, uint8_t* hits, uint8_t* virgin,
                                         ptkit_outcome* outcome);

/* Of the last buffer that was decoded: copy up to `most` edges, those that hit a byte of the virgin map for
   the first time, or errors, in no particular order (errors: as they came). Return how many there are, copied
   or not; 0 if another call uses the handle. */
PTKIT_API size_t ptkit_coverage_edges(ptkit_coverage* coverage, ptkit_edge* edges, size_t most);
PTKIT_API size_t ptkit_coverage_new_edges(ptkit_coverage* coverage, ptkit_edge* edges, size_t most);
PTKIT_API size_t ptkit_coverage_errors(ptkit_coverage* coverage, ptkit_error* errors, size_t most);

/* The hash of an edge in maps. It never changes: maps of different runs and versions can be compared. */
PTKIT_API uint32_t ptkit_edge_hash(uint64_t from, uint64_t to);

#ifdef __cplusplus
}
#endif

#endif
