// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "session.h"

static void* listen_to(int32_t process, uint64_t bytes) {
  struct ptkit_windows_config config = simple_config(0);
  config.config.process = process;
  config.config.sideband_bytes = bytes;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  return session;
}

/* The next record of this type and process from `at` on, which moves behind it; null: there is none. */
static const struct ptkit_record* find_record(const struct bytes* records, size_t* at, uint16_t type,
                                              int32_t pid) {
  uint64_t since = 0;
  while (*at < records->count) {
    const struct ptkit_record* record = (const void*)(records->all + *at);
    CHECK(record->size >= sizeof(*record) && record->size % 8 == 0 && record->size <= records->count - *at);
    if (failures != 0) return NULL;
    CHECK(record->tsc >= since);
    since = record->tsc;
    *at += record->size;
    if (record->type == type && record->pid == pid) return record;
  }
  return NULL;
}

void tells_of_processes_and_threads(void) {
  struct bytes records = {0};
  size_t at = 0;
  void* session = listen_to(0, 1 << 20);
  tell(session, MODEL_TELL_PROCESS, 500000, 4, true);
  tell(session, MODEL_TELL_THREAD, 500000, 500004, true);
  tell(session, MODEL_TELL_THREAD, 500000, 500004, false);
  tell(session, MODEL_TELL_PROCESS, 500000, 4, false);
  consume_sideband(session, &records);
  const struct ptkit_record_fork* fork = (const void*)find_record(&records, &at, PTKIT_RECORD_FORK, 500000);
  CHECK(fork != NULL && fork->space.record.tid == 0 && fork->parent_pid == 4);
  CHECK(fork != NULL && fork->space.kernel_cr3 == 500000ULL << 16 && fork->space.user_cr3 == 500000ULL << 16);
  fork = (const void*)find_record(&records, &at, PTKIT_RECORD_FORK, 500000);
  CHECK(fork != NULL && fork->space.record.tid == 500004);
  const struct ptkit_record* exit = find_record(&records, &at, PTKIT_RECORD_EXIT, 500000);
  CHECK(exit != NULL && exit->tid == 500004);
  exit = find_record(&records, &at, PTKIT_RECORD_EXIT, 500000);
  CHECK(exit != NULL && exit->tid == 0);
  free_bytes(&records);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  uint64_t head = status_of(session, 0).sideband_head;
  tell(session, MODEL_TELL_PROCESS, 500000, 4, true);
  CHECK_EQUAL(status_of(session, 0).sideband_head, head);
  device_close(session);
}

/* Of one process: what others do is not told, and its end is an event. */
void tells_of_images(void) {
  static const char name[] = "\\Device\\HarddiskVolume1\\late.dll";
  struct bytes records = {0};
  struct model_tell told;
  struct ptkit_windows_wait wait = {0};
  size_t at = 0;
  void* session = listen_to(USER_PROCESS, 1 << 20);
  memset(&told, 0, sizeof(told));
  told.event = MODEL_TELL_IMAGE;
  told.pid = USER_PROCESS;
  told.address = 0x7ff600000000;
  told.bytes = 0x20000;
  told.path_bytes = 2 * (sizeof(name) - 1);
  for (size_t i = 0; i + 1 < sizeof(name); i++) told.path[i] = (uint16_t)name[i];
  CHECK_EQUAL(device_request(session, MODEL_TELL, &told, sizeof(told), NULL, 0, NULL), DEVICE_SUCCESS);
  told.pid = USER_PROCESS + 4;
  CHECK_EQUAL(device_request(session, MODEL_TELL, &told, sizeof(told), NULL, 0, NULL), DEVICE_SUCCESS);
  told.pid = 0;
  told.path_bytes = 0;
  CHECK_EQUAL(device_request(session, MODEL_TELL, &told, sizeof(told), NULL, 0, NULL), DEVICE_SUCCESS);
  consume_sideband(session, &records);
  const struct ptkit_record_image* image =
      (const void*)find_record(&records, &at, PTKIT_RECORD_IMAGE, USER_PROCESS);
  while (image != NULL && image->address != 0x7ff600000000)
    image = (const void*)find_record(&records, &at, PTKIT_RECORD_IMAGE, USER_PROCESS);
  CHECK(image != NULL && image->bytes == 0x20000 && image->flags == 0 &&
        image->path_bytes == 2 * (sizeof(name) - 1));
  CHECK(image != NULL && memcmp(image + 1, told.path, 2 * (sizeof(name) - 1)) == 0);
  image = (const void*)find_record(&records, &at, PTKIT_RECORD_IMAGE, 0);
  CHECK(image != NULL && image->flags == PTKIT_IMAGE_KERNEL && image->path_bytes == 0);
  at = 0;
  CHECK(find_record(&records, &at, PTKIT_RECORD_IMAGE, USER_PROCESS + 4) == NULL);
  free_bytes(&records);

  tell(session, MODEL_TELL_PROCESS, USER_PROCESS, 4, false);
  uint32_t events = 0;
  for (int i = 0; i < 10 && !(events & PTKIT_EVENT_ENDED); i++) {
    CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_WAIT, NULL, 0, &wait, sizeof(wait), NULL),
                DEVICE_SUCCESS);
    events |= wait.events;
  }
  CHECK(events & PTKIT_EVENT_ENDED);
  device_close(session);
}

void counts_lost_records(void) {
  struct bytes records = {0};
  size_t at = 0;
  void* session = listen_to(USER_PROCESS, 4096);
  consume_sideband(session, &records);
  free_bytes(&records);
  for (uint32_t i = 0; i < 200; i++) tell(session, MODEL_TELL_THREAD, USER_PROCESS, 9000 + i, true);
  struct ptkit_status status = status_of(session, 0);
  CHECK(status.sideband_lost > 100);
  CHECK(status.sideband_head - status.sideband_tail <= 4096);
  consume_sideband(session, &records);
  free_bytes(&records);
  tell(session, MODEL_TELL_THREAD, USER_PROCESS, 9999, true);
  consume_sideband(session, &records);
  const struct ptkit_record* first = (const void*)records.all;
  CHECK(records.count > 0 && first->type == PTKIT_RECORD_LOST);
  CHECK(records.count > 0 && ((const struct ptkit_record_lost*)first)->count == status.sideband_lost);
  const struct ptkit_record* fork = find_record(&records, &at, PTKIT_RECORD_FORK, USER_PROCESS);
  CHECK(fork != NULL && fork->tid == 9999);
  free_bytes(&records);
  device_close(session);
}
