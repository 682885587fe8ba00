"""Operations behind commands: each receives what it needs and returns its result; nothing is printed."""
