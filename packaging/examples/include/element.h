// SPDX-License-Identifier: MIT

// A type of ELEMENT_SIZE bytes.
#if ELEMENT_SIZE == 2
typedef ushort element;
#elif ELEMENT_SIZE == 4
typedef uint element;
#elif ELEMENT_SIZE == 8
typedef ulong element;
#else
#error "ELEMENT_SIZE is 2, 4 or 8"
#endif
