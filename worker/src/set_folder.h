/* What lies in a folder of handler sets, for those who misspelt one. */
#ifndef WORKER_SET_FOLDER_H
#define WORKER_SET_FOLDER_H

#include <commandbus/error.h>

/* Fails with CB_MISUSE: <dir>/<name>.so is not there. Says which sets are. */
bool set_folder_lacks(const char *dir, const char *name, cb_error *e);

#endif
