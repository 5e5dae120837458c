// Messages are not translated.
#pragma once

#define dgettext(domain, text) (text)
